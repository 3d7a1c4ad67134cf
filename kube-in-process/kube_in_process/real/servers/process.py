"""Run one server as a process: start, stop, kill and pause it, and read the end of its log.

A server ends together with its parent process, even if the parent is killed (Linux only, by the
parent-death signal).
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kube_in_process.real.servers.programs import CannotStart

_STOP_SECONDS = 20.0
_TAIL_BYTES = 16_384
_PR_SET_PDEATHSIG = 1
_GARBAGE_COLLECTION = {"GOGC": "400"}
"""Go collects garbage when the heap has grown by this percentage. With the default of 100, garbage
collection takes a third of the servers' time; the heaps here are small."""
_ERROR = re.compile(r'\b[EF]\d{4} |"level":"(fatal|panic|error)"|^(panic|Error|error|flag)\b')
"""The beginning of an error in a log: klog's severity and date, etcd's JSON, or Go's messages."""


def free_port() -> int:
    """A port of the loopback that no process listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@dataclass(slots=True)
class ServerProcess:
    """A program with its arguments. It can be started again after it has ended."""

    name: str
    command: Sequence[str]
    log: Path
    _process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        """Start the program and append its output to the log.

        Raises:
            CannotStart: the program does not run on this machine.
        """
        with open(self.log, "ab") as log:
            try:
                self._process = subprocess.Popen(
                    list(self.command),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**_GARBAGE_COLLECTION, **os.environ},
                    # Ctrl-C in the terminal reaches only the parent, which then stops its servers
                    start_new_session=True,
                    preexec_fn=death_with_parent(),
                )
            except OSError as error:
                raise CannotStart(f"{self.command[0]}: {error.strerror or error}") from error

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def check(self) -> None:
        """Check that the server has not ended.

        Raises:
            CannotStart: the server has ended. The message has the end of its log.
        """
        if self._process is not None and (code := self._process.poll()) is not None:
            raise CannotStart(f"{self.name} has ended with exit code {code}: {self.last_error()}")

    def last_error(self) -> str:
        """The last error in the log; without an error, the last line."""
        lines = [line for line in self._tail() if line.strip()]
        errors = [line for line in lines if _is_error(line)]
        return (errors or lines or ["its log is empty"])[-1].strip()[:500]

    def _tail(self) -> list[str]:
        try:
            data = self.log.read_bytes()[-_TAIL_BYTES:]
        except OSError:
            return []
        return data.decode(errors="replace").splitlines()

    def pause(self) -> None:
        """Pause the process without ending it (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end of the process. ``check`` does not miss it then."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Send SIGTERM, after ``_STOP_SECONDS`` SIGKILL, and wait for the end of the process."""
        if not self.running or self._process is None:
            return
        self.resume()
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self.running and self._process is not None:
            self._process.send_signal(number)


def _is_error(line: str) -> bool:
    """Whether a line of a Kubernetes or etcd log is an error, and not part of a stack trace."""
    if line.startswith(("\t", " ", "goroutine ")):
        return False
    return _ERROR.search(line) is not None


def death_with_parent() -> Callable[[], None] | None:
    """What the child does before it runs the program: it asks for SIGKILL when its parent ends."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def ask() -> None:
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # the parent may have ended before this request
        if os.getppid() != parent:
            os._exit(1)

    return ask
