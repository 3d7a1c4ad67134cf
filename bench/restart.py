"""How long a release takes after a restart of claimctl, on a real control plane."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from statistics import median

from bench.jobs import LEASE, JobsBench, common_flags, p99, play, told
from bench.table import BenchPart, Line, at_most, register

RESTARTS = (
    "kill -9",
    "rolling upgrade",
    "young standby",
    "an API server restart",
    "an API server restart and kill -9",
)
BEFORE_RESTART = 75.0
"""Seconds in which the leader notes a checkpoint. Without events it does so once a minute."""


async def _restarts(bench: JobsBench, options: argparse.Namespace) -> AsyncIterator[Line]:
    """How long a release takes after the controller or the API server was restarted.

    The workloads end when the successor leads, so that the wait for the Lease does not count.
    """
    usual: list[float] = []
    for number, what in enumerate(("nothing", *options.after)):
        keys = await bench.begin(f"restart-{number}", 5, held=True)
        await asyncio.sleep(BEFORE_RESTART)
        await _restart(what, bench)
        await bench.end(keys)
        await bench.freed(keys)
        seconds = [bench.seen.free[key] - bench.seen.job_ended[key] for key in keys]
        told(f"after {what}", seconds)
        if what == "nothing":
            usual = seconds
        else:
            name = f"restart {bench.version}: a release after {what}"
            yield Line(f"{name}, median", median(seconds), "no restart", median(usual), "s")
            extra = p99(seconds) - p99(usual)
            yield Line(f"{name}, extra p99", extra, unit="s", goal=at_most(5), runs=len(seconds))


async def _restart(what: str, bench: JobsBench) -> None:
    controllers = bench.controllers
    old = next(iter(controllers.running))
    if "API server" in what:
        await asyncio.to_thread(bench.plane.restart, "kube-apiserver")
    if what.endswith("kill -9"):
        controllers.kill(old)
        controllers.start(f"{old}-again")
    elif what == "rolling upgrade":
        controllers.start("upgraded")
        await asyncio.sleep(5.0)
        await asyncio.to_thread(controllers.running.pop(old).stop)
    elif what == "young standby":
        controllers.start("standby")
        await asyncio.sleep(5.0)
        controllers.kill(old)
    await asyncio.sleep(LEASE)


def _part(options: argparse.Namespace) -> list[Line]:
    options.flag.append("--checkpoint")
    return play(options, _restarts, claims=5)


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--after", nargs="+", choices=RESTARTS, default=RESTARTS, metavar="WHAT")
    common_flags(parser)


register(BenchPart("restart", "releases after restarts of claimctl", _part, _flags, True))
