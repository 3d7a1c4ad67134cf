"""Plays many runs on the virtual clock: on all cores, and with one report in the end."""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from kube_in_process.real.flags import Parser, number
from kube_in_process.virtual import Deadlock, LostError, OutOfTime, run

from labs import frame
from labs.findings import RunFindings, Tally

BATCH = 8
"""How many runs a process plays before it returns what they found."""

T = TypeVar("T")
Play = Callable[[T], RunFindings]

# In one process


def to_its_end(work: Coroutine[Any, Any, None], found: RunFindings, limit: float) -> None:
    """Play one run. That it does not end is a finding.

    Args:
        limit: virtual seconds after which it is given up.
    """
    try:
        run(work, limit=limit)
    except (Deadlock, LostError, OutOfTime) as error:
        found.violations.append(f"{type(error).__name__}: {error}")


def prepare() -> None:
    """Switch logs off, and collect garbage only where it is asked for."""
    frame.quiet()
    gc.disable()


def play_all(play: Play[T], items: Iterable[T]) -> Tally:
    """Play some runs; then collect the garbage."""
    tally = Tally()
    for item in items:
        tally.note(play(item))
    gc.collect()
    return tally


# On all cores


def spread(
    play: Play[T],
    items: Iterable[T],
    workers: int,
    over: Callable[[], bool] = lambda: False,
    batch: int = BATCH,
) -> Tally:
    """Play runs until there are no more, or the time is over; those that have begun are finished.

    Findings are printed at once: a long lab may be interrupted.
    """
    left, tally = iter(items), Tally()
    under_way: set[Future[Tally]] = set()
    with frame.processes(workers, prepare) as pool:
        while True:
            while len(under_way) < workers and not over() and (some := list(islice(left, batch))):
                under_way.add(pool.submit(partial(play_all, play), some))
            if not under_way:
                return tally
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                tally.add(_told(future.result()))


def _told(tally: Tally) -> Tally:
    for found in tally.bad:
        frame.say(f"{found.name}: {'; '.join(found.texts())[:300]}")
    return tally


# The flags and the report of a lab


def add_seeds(parser: Parser, count: int, flag: str = "--seeds") -> None:
    """Add the flags of a lab that plays so many seeds on all cores."""
    parser.add_argument(flag, dest="count", type=number(1), default=count, help="(%(default)s)")
    parser.add_argument("--seed", type=number(), default=0, help="the first seed (%(default)s)")
    add_workers(parser)


def add_workers(parser: Parser) -> None:
    parser.add_argument("--workers", type=number(1), default=os.cpu_count() or 1)


def seeds(given: argparse.Namespace) -> range:
    """The seeds that the flags name."""
    return range(given.seed, given.seed + given.count)


def report(tally: Tally, *lines: tuple[str, object]) -> int:
    """Print the figures and the first run with a finding; 1 if there is one.

    Args:
        lines: what is printed above the figures of the tally.
    """
    print(frame.figures([*lines, *tally.figures()]))
    for found in tally.bad[:1]:
        print(found.shown())
    return 1 if tally.bad else 0
