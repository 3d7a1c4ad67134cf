"""What labs do alike: start real servers, play on them, wait, use all cores, print tables."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import structlog
from kube_in_process.real.flags import Servers
from kube_in_process.real.servers.history import HistoryLost
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import CannotStart

from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
SHOWN = 5
"""How many findings of a kind are shown."""

T = TypeVar("T")

# Real servers


def on_servers(
    options: Servers,
    wanted: Wanted,
    play: Callable[[ControlPlane, HttpTransport], Awaitable[int]],
) -> int:
    """Play on a control plane that is started before and stopped afterwards.

    Args:
        play: gets the control plane and an administrator's connection to it; returns an exit code.

    Returns:
        That exit code; 1 if a server did not start or the cluster did not become ready; 130 after
        Ctrl-C.
    """
    try:
        with (
            kept_or_temporary(options.keep) as directory,
            running(ControlPlane(options.programs, directory, wanted)) as plane,
        ):
            return asyncio.run(_connected(plane, play))
    except (CannotStart, HistoryLost, TimeoutError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


async def _connected(
    plane: ControlPlane, play: Callable[[ControlPlane, HttpTransport], Awaitable[int]]
) -> int:
    async with HttpTransport(load_connection(str(plane.files.kubeconfig()))) as transport:
        return await play(plane, transport)


@contextmanager
def kept_or_temporary(kept: str) -> Iterator[Path]:
    """A new folder below ``kept``, which stays; without ``kept`` one that goes with the block."""
    if not kept:
        with tempfile.TemporaryDirectory(prefix="labs-") as temporary:
            yield Path(temporary)
        return
    Path(kept).mkdir(parents=True, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="labs-", dir=kept)
    say(f"logs are kept in {directory}")
    yield Path(directory)


@asynccontextmanager
async def nodes(kubelets: Kubelets) -> AsyncIterator[None]:
    """Play the kubelets beside the block, which begins when their nodes have joined."""
    joined = asyncio.Event()
    async with beside(kubelets.run(joined)) as playing:
        waiting = asyncio.create_task(joined.wait())
        await asyncio.wait({playing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if playing.done():
            playing.result()
        yield


# Tasks and waits


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Do something without an end beside the block; an error of it is raised after the block."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()


async def together(acts: Iterable[Awaitable[T]], at_a_time: int = 8) -> list[T]:
    """Carry out all of them, a few at a time; returns what they return, in their order."""
    slots = asyncio.Semaphore(at_a_time)

    async def in_slot(act: Awaitable[T]) -> T:
        async with slots:
            return await act

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(in_slot(act)) for act in acts]
    return [task.result() for task in tasks]


async def until_none(
    left: Callable[[], Awaitable[list[str]]], seconds: float, pause: float = 1.0
) -> None:
    """Wait until nothing is left. Raises TimeoutError that names what is left."""
    end = time.monotonic() + seconds
    while names := await left():
        if time.monotonic() > end:
            raise TimeoutError(f"left after {seconds:g} s: {'; '.join(names[:10])}")
        await asyncio.sleep(pause)


# Processes of claimctl and kube-in-process


def quiet() -> None:
    """Switch logs off in a process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def processes(count: int | None = None, prepare: Callable[[], None] = quiet) -> ProcessPoolExecutor:
    """Processes that start anew, one for each core unless ``count`` is given."""
    return ProcessPoolExecutor(count or os.cpu_count(), get_context("spawn"), initializer=prepare)


# Output


def say(text: str) -> None:
    """Tell a person how far the lab is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def figures(lines: Iterable[tuple[str, object]]) -> str:
    """One line for each name with its value."""
    return "\n".join(f"{name:20} {value}" for name, value in lines)


def some(texts: list[str]) -> str:
    """The number of texts, and the first of them below it."""
    lines = [str(len(texts)), *texts[:SHOWN]]
    if len(texts) > SHOWN:
        lines.append(f"and {len(texts) - SHOWN} more")
    return "\n    ".join(lines)


def table(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown."""
    columns = list(header)
    lines: list[Iterable[object]] = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
