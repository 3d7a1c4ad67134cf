"""A ``claimctl`` that starts quickly: it is forked from a process that has the modules loaded.

To start Python and to import the modules takes most of the time of a command. Each command is a
process of its own nevertheless, with the streams, environment, folder and exit code of its caller.
It gets no signals.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import json
import os
import pkgutil
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions

import claimctl
import claimctl_demo
import claimctl_reschedule
from claimctl.cli.main import run
from claimctl.kube.clock import LoopClock

NAME = "claimctl"
_SOCKET = "socket"
_PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    job = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()])
    socket.send_fds(connection, [job.encode()], [0, 1, 2])
    connection.shutdown(socket.SHUT_WR)
    sys.exit(int(connection.recv(16)))
"""


@cache
def folder() -> Path:
    """A folder with the program ``claimctl``. Its process ends with this one."""
    place = Path(tempfile.mkdtemp(prefix="claimctl-warm-"))
    program = place / NAME
    address = str(place / _SOCKET)
    program.write_text(_PROGRAM.format(python=sys.executable, address=address))
    program.chmod(0o755)
    process = subprocess.Popen(
        (sys.executable, "-m", __name__, address),
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.read(1)

    @atexit.register
    def end() -> None:
        process.communicate()
        shutil.rmtree(place)

    return place


def _serve(address: str) -> None:
    for package in (claimctl, claimctl_demo, claimctl_reschedule):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    asyncio.run(_start_a_cluster())
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for commands
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        os.write(1, b".")
        while True:
            ready, _, _ = select.select([listener.fileno(), 0], [], [])
            if 0 in ready:
                return
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _answer(connection)
                os._exit(0)
            connection.close()


async def _start_a_cluster() -> None:
    """An embedded cluster reads its schemas when the first one of a process starts."""
    cluster = Cluster(ClusterOptions(), LoopClock())
    await cluster.start()
    await cluster.stop()


def _answer(connection: socket.socket) -> None:
    """Run the command that a caller asks for, and send its exit code."""
    job, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while piece := connection.recv(1 << 16):
        job += piece
    arguments, environment, place = json.loads(job)
    pid = os.fork()
    if pid == 0:
        connection.close()
        os._exit(_run(arguments, environment, place, streams))
    _, status = os.waitpid(pid, 0)
    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _run(arguments: list[str], environment: dict[str, str], place: str, streams: list[int]) -> int:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(place)
    random.seed()
    code = run(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    _serve(sys.argv[1])
