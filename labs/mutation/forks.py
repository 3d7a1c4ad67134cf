"""Runs tasks in forked processes, which need neither to import nor to collect anything anew."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Generic, TypeVar, cast

MOST_BYTES = 4 << 30
"""Memory of a process: a mutation can make a loop fill it."""
T = TypeVar("T")
Tell = Callable[[Any], None]
Task = Callable[[Tell], None]
"""What a process does. It tells the parent process what it finds."""


@dataclass(slots=True)
class Ended(Generic[T]):
    """A process that has ended.

    Attributes:
        name: what the caller named the task.
        told: what the task told, in this order.
        well: whether the task returned: it was not killed and raised nothing.
    """

    name: T
    told: list[Any] = field(default_factory=list)
    well: bool = False


def run(tasks: Iterable[tuple[T, Task]], workers: int) -> Iterator[Ended[T]]:
    """Run each task in a process of its own, ``workers`` at once; yield those that ended."""
    waiting = iter(tasks)
    running: dict[Connection, tuple[int, Ended[T]]] = {}
    while True:
        while len(running) < workers and (task := next(waiting, None)) is not None:
            reader, pid = _forked(task[1])
            running[reader] = (pid, Ended(task[0]))
        if not running:
            return
        for ready in wait(list(running)):
            reader = cast(Connection, ready)  # it gives back what it was given
            pid, ended = running[reader]
            try:
                ended.told.append(reader.recv())
            except EOFError:
                reader.close()
                del running[reader]
                ended.well = os.waitpid(pid, 0)[1] == 0
                yield ended


def _forked(task: Task) -> tuple[Connection, int]:
    reader, tells = Pipe(duplex=False)
    if pid := os.fork():
        tells.close()
        return reader, pid
    code = 1
    try:
        reader.close()
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, resource.RLIM_INFINITY))
        # a shell starts background jobs with SIGINT ignored, and tests interrupt commands
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _be_quiet()
        task(tells.send)
        code = 0
    finally:
        os._exit(code)


def _be_quiet() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
