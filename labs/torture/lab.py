"""Plays perturbations, schedules and the model in a fixed time.

Exit code 1 with the seed and the history of the first run that broke a promise.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from random import Random

from kube_in_process.real.flags import Parser, number

from labs.runs import add_workers, prepare, report, spread
from labs.torture.explorer import explore
from labs.torture.perturbations import Point, perturb, points

MODEL = (sys.executable, "-m", "labs", "model")
STATES = re.compile(r"states \d+, ")
SHARE_OF_POINTS = 0.6
"""The share of the budget for perturbations; the rest is for schedules."""


def parser() -> Parser:
    flags = Parser("labs torture", __doc__)
    seconds = number(1, kind=float)
    flags.add_argument("--budget", type=seconds, default=180.0, help="seconds (%(default)g)")
    flags.add_argument("--seed", type=number(), default=0, help="the first seed (%(default)s)")
    flags.add_argument(
        "--shard", type=_shard, default=(1, 1), metavar="I/N", help="play one part of N"
    )
    add_workers(flags)
    flags.add_switch("--reschedule", "1 to run `claimctl reschedule` beside schedules")
    return flags


def _shard(text: str) -> tuple[int, int]:
    shard, _, shards = text.partition("/")
    if not (shard.isdigit() and shards.isdigit() and 1 <= int(shard) <= int(shards)):
        raise argparse.ArgumentTypeError(f"{text!r} is not I/N with 1 <= I <= N")
    return int(shard), int(shards)


def main(arguments: Sequence[str]) -> int:
    given = parser().parse_args(arguments)
    prepare()
    over = _clock(given.budget)
    points_over = _clock(given.budget * SHARE_OF_POINTS)
    model = subprocess.Popen(MODEL, stdout=subprocess.PIPE, text=True)
    every = points()
    tried = spread(perturb, points_of(given, every), given.workers, points_over)
    began = time.monotonic()
    explored = partial(explore, reschedule=given.reschedule)
    played = spread(explored, seeds_of(given), given.workers, over)
    rate = played.runs / (time.monotonic() - began)
    searched = model.communicate()[0]
    states = next(filter(STATES.match, searched.splitlines()), "no answer")
    lines = [("schedules run", f"{played.runs} from SEED={given.seed} ({rate:.1f} a second)")]
    lines += [("perturbations", f"{tried.runs} of {len(every)} tried"), ("model", states)]
    played.add(tried)
    code = report(played, *lines)
    if model.returncode:
        print(searched)
    return 1 if model.returncode else code


def _clock(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds have passed from now on."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def points_of(given: argparse.Namespace, every: Sequence[Point]) -> list[Point]:
    """The perturbations of this shard."""
    shard, shards = given.shard
    mine = [point for point in every if point.number % shards == shard - 1]
    Random(given.seed).shuffle(mine)
    return mine


def seeds_of(given: argparse.Namespace) -> Iterator[int]:
    """The seeds of this shard, without end."""
    shard, shards = given.shard
    return count(given.seed + shard - 1, shards)
