"""What it costs to follow all pods of a cluster: claimctl beside what a user would pick.

``cache``: each contender lists the same pods from the same server, over TLS, and keeps them.
``events``: each contender follows a watch whose events are heartbeats, but for one in twenty.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.contenders import LISTS, WATCHES
from bench.pods import Load, serving
from bench.table import BenchPart, Goal, Line, at_least, at_most, register, tell

SLOW = "kr8s"
"""This contender takes more than a minute for 20,000 pods: one run, and fewer events."""


@dataclass
class Taken:
    """The CPU seconds and the peak megabytes of one contender's runs."""

    cpu: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    kept: int = 0

    def add(self, found: dict[str, float]) -> None:
        self.cpu.append(found["cpu"])
        self.memory.append(found["memory"])
        self.kept = int(found["kept"])


def contender(verb: str, name: str, kubeconfig: Path, count: int = 0) -> dict[str, float]:
    """Run one contender in a process of its own."""
    command = [sys.executable, "-m", "bench.contenders", verb, name, str(kubeconfig), str(count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def lists(options: argparse.Namespace) -> dict[str, Taken]:
    """Let the contenders list the pods in turn."""
    found: dict[str, Taken] = {}
    with serving(Load(options.pods)) as kubeconfig:
        for number in range(options.runs):
            for name in options.only or LISTS:
                if name == SLOW and number:
                    continue
                taken = found.setdefault(name, Taken())
                taken.add(contender("list", name, kubeconfig))
                tell(f"{name:15} {taken.cpu[-1]:6.2f} s  {taken.memory[-1]:7.1f} MB  {taken.kept}")
    return found


BESIDE: dict[str, tuple[str, Goal | None, Goal | None]] = {
    "bytes-aiohttp": ("the bytes alone, by aiohttp", at_most(2), at_most(1.5)),
    "bytes": ("the bytes alone, by http.client", None, None),
    "json": ("json of the standard library", None, None),
    "SharedInformer": ("SharedInformer (kubernetes)", at_least(15), at_least(8)),
    "lightkube": ("lightkube", None, None),
    "kr8s": ("kr8s", None, None),
}
"""What each contender is called, with the goals for CPU and memory."""


def _cache(options: argparse.Namespace) -> Iterator[Line]:
    found = lists(options)
    ours = found["claimctl"]
    kept = f"{options.pods:,} pods"
    for name, (beside, cpu, memory) in BESIDE.items():
        if name in found:
            theirs = found[name]
            runs = len(theirs.cpu)
            yield _line(f"cache: CPU for {kept}", ours.cpu, beside, theirs.cpu, "s", cpu, runs)
            yield _line(
                f"cache: memory for {kept}", ours.memory, beside, theirs.memory, "MB", memory, runs
            )
    if "claimctl-all" in found and "bytes-aiohttp" in found:
        every, alone = found["claimctl-all"], found["bytes-aiohttp"]
        what, beside = "if each pod names a claim", "the bytes alone, by aiohttp"
        runs = len(every.cpu)
        yield _line(f"cache: CPU {what}", every.cpu, beside, alone.cpu, "s", None, runs)
        yield _line(f"cache: memory {what}", every.memory, beside, alone.memory, "MB", None, runs)


def _line(
    name: str,
    ours: Sequence[float],
    beside: str,
    theirs: Sequence[float],
    unit: str,
    goal: Goal | None,
    runs: int,
) -> Line:
    return Line(name, median(ours), beside, median(theirs), unit, goal, runs)


def _events(options: argparse.Namespace) -> Iterator[Line]:
    """CPU microseconds of each event."""
    found: dict[str, list[float]] = {}
    with serving(Load(options.pods, options.events)) as kubeconfig:
        for number in range(options.runs):
            for name in options.only or WATCHES:
                if name == SLOW and number:
                    continue
                count = min(2_000, options.events) if name == SLOW else options.events
                cpu = contender("watch", name, kubeconfig, count)["cpu"]
                found.setdefault(name, []).append(1e6 * cpu / count)
                tell(f"{name:15} {count / cpu:9,.0f} events per CPU second")
    for name, each in found.items():
        if name != "claimctl":
            beside, what = BESIDE[name][0], "events: CPU for each event"
            yield _line(what, found["claimctl"], beside, each, "µs", None, len(each))


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[], choices=sorted(LISTS))


def _event_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[], choices=sorted(WATCHES))


register(BenchPart("cache", "CPU and memory to have all pods of a cluster", _cache, _flags))
register(BenchPart("events", "CPU for the events of a watch", _events, _event_flags))
