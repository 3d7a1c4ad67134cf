"""Run a program in namespaces of its own: network, mounts, processes.

    sys.exit(enclosed("labs.torture_nodes", sys.argv[1:]))

``enclosed`` starts this module by ``unshare`` as process 1 of the new namespaces. It prepares the
file systems and the network, runs the program, and reaps what others leave. When it ends, however
it ends, the kernel kills every process inside, and the mounts and the network go with the last one.
Only empty cgroups stay; the next run removes them.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from kube_in_process.real.nodes.network import make_network
from kube_in_process.real.servers.process import death_with_parent
from kube_in_process.real.servers.programs import CannotStart

HOME = Path("/run/claimctl-nodes")
"""The folder for everything that a cluster writes. It is in memory and only seen inside."""
CGROUP = "claimctl-nodes"
_LOCK = Path("/run/lock/claimctl-nodes")
_INSIDE = "CLAIMCTL_NODES_INSIDE"
_CGROUPS = Path("/sys/fs/cgroup")
_OVERLAID = ("/var/lib", "/var/log")
"""Folders into which kubelet, containerd and the CNI plugins write outside of their own ones."""
_UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
CANNOT_START = 2
"""The exit code if the namespaces cannot be prepared; a line has said why."""
_LOOKS, _LOOK_SECONDS = 50, 0.1


def inside() -> bool:
    """Whether this process runs in the namespaces already."""
    return os.environ.get(_INSIDE) == "1"


def enclosed(module: str, arguments: Sequence[str]) -> int:
    """Run ``python -m module arguments`` inside, and return its exit code.

    Raises:
        CannotStart: another run uses the nodes, or the namespaces cannot be made.
    """
    with _alone():
        remove_leftovers()
        _try_unshare()
        inner = (sys.executable, "-m", __name__, module, *arguments)
        # Ctrl-C reaches the whole group; the program inside decides how to end.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            child = subprocess.Popen((*_UNSHARE, *inner), preexec_fn=death_with_parent())
            return _wait(child)
        finally:
            signal.signal(signal.SIGINT, before)
            remove_leftovers()


def _try_unshare() -> None:
    done = subprocess.run((*_UNSHARE, "true"), capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotStart(f"namespaces cannot be made here: {done.stderr.strip()}")


def _wait(child: subprocess.Popen[bytes]) -> int:
    def forward(number: int, _: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(_only_child(child.pid), number)

    before = signal.signal(signal.SIGTERM, forward)
    try:
        return child.wait()
    finally:
        signal.signal(signal.SIGTERM, before)


def _only_child(pid: int) -> int:
    """Process 1 of the namespaces, by the number that it has outside."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


@contextmanager
def _alone() -> Iterator[None]:
    _LOCK.parent.mkdir(parents=True, exist_ok=True)
    with open(_LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotStart(
                "another run on this machine uses nodes; wait until it has ended"
            ) from error
        yield


def remove_leftovers() -> None:
    """Remove the cgroups of an earlier run. Processes of a killed run need a moment to end."""
    folders = [path for path in (_CGROUPS, *_CGROUPS.glob("*/")) if (path / CGROUP).is_dir()]
    for _ in range(_LOOKS):
        for folder in folders:
            for path, _, _ in os.walk(folder / CGROUP, topdown=False):
                with suppress(OSError):
                    os.rmdir(path)
        if not any((folder / CGROUP).is_dir() for folder in folders):
            return
        time.sleep(_LOOK_SECONDS)


def _prepare() -> None:
    """Make the file systems and the network of the namespaces.

    Raises:
        CannotStart: the kernel refuses something.
    """
    # on a tmpfs of its own, HOME and the sockets of containerd are not seen outside
    _mount("-t", "tmpfs", "tmpfs", "/run")
    HOME.mkdir()
    Path("/run/lock").mkdir()
    for number, folder in enumerate(_OVERLAID):
        upper, work = (HOME / f"{kind}{number}" for kind in ("upper", "work"))
        upper.mkdir()
        work.mkdir()
        where = f"lowerdir={folder},upperdir={upper},workdir={work}"
        _mount("-t", "overlay", "overlay", "-o", where, folder)
    make_network()


def _mount(*arguments: str) -> None:
    done = subprocess.run(("mount", *arguments), capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotStart(f"mount {arguments[-1]}: {done.stderr.strip()}")


def main(module: str, *arguments: str) -> int:
    """Process 1: prepare, run the program, reap every process that ends, return its exit code."""
    try:
        _prepare()
    except CannotStart as error:
        print(f"nodes cannot run here: {error}", file=sys.stderr)
        return CANNOT_START
    child = subprocess.Popen(
        (sys.executable, "-m", module, *arguments), env={**os.environ, _INSIDE: "1"}
    )
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
