"""Servers that end while they start: one line with the end of their log, nothing left running."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.process import ServerProcess
from kube_in_process.real.servers.programs import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    CannotStart,
    find_programs,
)

from kube_in_process_tests.real.scripts import folder_of, write


def plane_of(path: Path, wanted: Wanted | None = None) -> ControlPlane:
    directory = path / "files"
    directory.mkdir(exist_ok=True)
    return ControlPlane(find_programs(path), directory, wanted or Wanted())


def refused(plane: ControlPlane) -> str:
    with pytest.raises(CannotStart) as error, running(plane):
        pass
    assert not any(server.running for server in plane.servers.values())
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", [ETCD, API_SERVER])
def test_a_server_that_ends_at_once_is_reported_with_its_log(tmp_path: Path, name: str) -> None:
    write(folder_of(tmp_path), name, 'echo "I0101 all is well"\necho "E0101 bad flag"\nexit 3')
    message = refused(plane_of(tmp_path))
    assert message == f"{name} has ended with exit code 3: E0101 bad flag"


def test_a_port_in_use_is_what_the_log_says(tmp_path: Path) -> None:
    """The real API server fails with this line; the plane hands it the port that was asked for."""
    then = 'echo "$@" | grep -q -- "--secure-port=$PORT" && echo "Error: bind: address in use"\n'
    folder_of(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        write(tmp_path, API_SERVER, f"PORT={port}\n{then}exit 1")
        message = refused(plane_of(tmp_path, Wanted(port=port)))
    assert message == "kube-apiserver has ended with exit code 1: Error: bind: address in use"


def test_groups_that_the_version_lacks_are_refused_before_anything_starts(tmp_path: Path) -> None:
    folder_of(tmp_path, version="Kubernetes v1.34.9")
    plane = plane_of(tmp_path, Wanted(pod_groups=True))
    assert refused(plane).startswith("Kubernetes 1.34 has no PodGroups for claims")
    assert plane.servers == {}


def test_the_telling_line_of_a_log_is_found(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("E0101 first\nE0102 12:00:00 cannot bind\nI0102 12:00:00 goodbye\n\tstack\n")
    assert ServerProcess("x", ("x",), log).last_error() == "E0102 12:00:00 cannot bind"
    log.write_text("hello\nworld\n")
    assert ServerProcess("x", ("x",), log).last_error() == "world"
    log.unlink()
    assert ServerProcess("x", ("x",), log).last_error() == "its log is empty"


def test_a_server_can_be_killed_and_started_again(tmp_path: Path) -> None:
    write(tmp_path, CONTROLLER_MANAGER)
    server = ServerProcess("x", (str(tmp_path / CONTROLLER_MANAGER),), tmp_path / "log")
    server.start()
    pids = [server.pid]
    server.kill()
    states = [server.running]
    server.start()
    pids.append(server.pid)
    states.append(server.running)
    server.stop()
    assert [*states, server.running] == [False, True, False]
    assert len(set(pids)) == 2


_PARENT = """
import sys, time
from pathlib import Path
from kube_in_process.real.servers.process import Server
server = Server("x", ("/bin/sleep", "600"), Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
def test_a_server_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path / "log")], stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    watched = os.pidfd_open(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    ended, _, _ = select.select([watched], [], [], 30)
    os.close(watched)
    assert ended
