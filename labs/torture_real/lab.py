"""Plays schedules on a real control plane while its servers are killed.

Exit code 1 if anything was found; prints its seed and history.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from kube_in_process.real.flags import Parser, Servers, number
from kube_in_process.real.servers.plane import ControlPlane, Wanted

from claimctl.kube.transport import HttpTransport
from labs import frame
from labs.torture_real.cluster import SharedCluster
from labs.torture_real.controllers import USER, Controllers
from labs.torture_real.judge import RealVerdict
from labs.torture_real.report import RealTally, report
from labs.torture_real.wave import Wave

MANAGERS = {
    "claimctl": USER,
    "kube-scheduler": "system:kube-scheduler",
    "kube-controller-manager": "system:kube-controller-manager",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TortureRealOptions(Servers):
    """``budget`` in seconds of real time for waves of schedules; ``seed`` of the first one."""

    budget: float
    seed: int
    namespaces: int
    tell: bool
    bug: str


def parser() -> Parser:
    flags = Parser("labs torture-real", __doc__)
    flags.add_servers()
    seconds = number(1, kind=float)
    flags.add_argument("--budget", type=seconds, default=300.0, help="seconds (%(default)g)")
    flags.add_argument("--seed", type=number(), default=0, help="the first seed (%(default)s)")
    flags.add_argument(
        "--namespaces", type=number(1), default=6, help="schedules at once (%(default)s)"
    )
    flags.add_switch("--tell", "1 to print the histories of all schedules")
    flags.add_argument("--bug", default="", help="plant this bug of labs/torture/mutants.py")
    return flags


def main(arguments: Sequence[str]) -> int:
    options = parser().read(arguments, TortureRealOptions)

    async def play(plane: ControlPlane, transport: HttpTransport) -> int:
        tally = await _play(options, plane, transport)
        print(frame.figures(report(options.label, options.seed, tally)))
        for verdict in tally.bad:
            print(verdict.shown())
        if tally.bad:
            return 1
        return frame.INTERRUPTED if tally.interrupted else 0

    wanted = Wanted(pod_groups=options.pod_groups, taint_rules=True, history=True)
    return frame.on_servers(options, wanted, play)


async def _play(
    options: TortureRealOptions, plane: ControlPlane, transport: HttpTransport
) -> RealTally:
    """Play waves until the budget is used up. A signal ends the current wave."""
    tally = RealTally(tell=options.tell)
    cluster = SharedCluster(plane, transport, plane.history(MANAGERS), options.pod_groups)
    cluster.history.subscribe(cluster.sight.notice)
    following = asyncio.create_task(cluster.history.run(), name="history")
    controllers = Controllers(plane.files, plane.directory, options.bug)
    waves = asyncio.create_task(_play_waves(options, cluster, controllers, tally))
    for number_of_signal in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number_of_signal, waves.cancel)
    tasks = {waves, following}
    if options.bug:
        # One finding is enough to notice the bug.
        tasks.add(asyncio.create_task(_end(waves, cluster.accused)))
    try:
        await asyncio.wait({waves, following}, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            following.result()
        try:
            await waves
        except asyncio.CancelledError:
            tally.interrupted = True
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for name in list(controllers.running):
            controllers.kill(name)
    for text in (*controllers.crashes, *controllers.tracebacks()):
        tally.bad.append(RealVerdict("claimctl", violations=[text]))
    tally.counts["claimctl ended by itself after an outage"] += controllers.ended
    return tally


async def _end(waves: asyncio.Task[None], accused: asyncio.Event) -> None:
    await accused.wait()
    waves.cancel()


async def _play_waves(
    options: TortureRealOptions, cluster: SharedCluster, controllers: Controllers, tally: RealTally
) -> None:
    end = time.monotonic() + options.budget
    await controllers.install(cluster.transport)
    seed = options.seed
    while (left := end - time.monotonic()) > 0:
        await Wave(cluster, controllers, seed, options.namespaces).play(left, tally)
        seed += options.namespaces
