"""``make torture-real``: schedules on a real control plane while its servers are killed.

Exit code 1, with the seed and the history of what was found.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from claimctl.controlplane.history import HistoryLost
from claimctl.controlplane.plane import ControlPlane, Wanted, running
from claimctl.controlplane.programs import CannotStart
from claimctl.kube.connection import load_connection
from claimctl.kube.documents import DocumentClient
from claimctl.kube.transport import HttpTransport
from tests.torture_real.controllers import USER, Controllers, install, token
from tests.torture_real.havoc import Havoc
from tests.torture_real.judge import Verdict
from tests.torture_real.options import BadOption, Options
from tests.torture_real.schedule import Schedule
from tests.torture_real.stage import Stage

PLAY = (40.0, 60.0, 80.0)
"""Seconds for which people act and faults strike in a wave."""
CONCLUDE = 700.0
"""Seconds after which a wave is given up."""
MANAGERS = {
    "claimctl": USER,
    "kube-scheduler": "system:kube-scheduler",
    "kube-controller-manager": "system:kube-controller-manager",
}


@dataclass
class Tally:
    """What became of everything so far."""

    waves: int = 0
    schedules: int = 0
    deeds: int = 0
    revisions: int = 0
    writes: int = 0
    holds: int = 0
    releases: int = 0
    pairs: int = 0
    """Waves with two controllers."""
    faults: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    bad: list[Verdict] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def add(self, schedule: Schedule) -> None:
        verdict = schedule.verdict
        self.schedules += 1
        self.deeds += schedule.deeds
        self.revisions += verdict.revisions
        self.writes += verdict.writes
        self.holds += verdict.holds
        self.releases += verdict.releases
        self.others += [f"{verdict.name}: {text}" for text in verdict.others]
        if not verdict.good:
            self.bad.append(verdict)


def main() -> int:
    try:
        options = Options.given()
        with _directory(options) as directory:
            wanted = Wanted(pod_groups=options.pod_groups, history=True)
            with running(ControlPlane(options.programs, directory, wanted)) as plane:
                tally = asyncio.run(_run(options, plane))
    except BadOption as error:
        print(error, file=sys.stderr)
        return 2
    except (CannotStart, HistoryLost) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    _report(options, tally)
    return 1 if tally.bad else 0


@contextmanager
def _directory(options: Options) -> Iterator[Path]:
    """Where servers keep their files; a new one in ``KEEP`` stays."""
    if options.keep:
        Path(options.keep).mkdir(parents=True, exist_ok=True)
        directory = tempfile.mkdtemp(prefix="torture-real-", dir=options.keep)
        print(f"logs are kept in {directory}", file=sys.stderr)
        yield Path(directory)
        return
    with tempfile.TemporaryDirectory(prefix="torture-real-") as temporary:
        yield Path(temporary)


async def _run(options: Options, plane: ControlPlane) -> Tally:
    """Waves until the budget is used up; a signal ends the wave that is under way."""
    end, tally = time.monotonic() + options.seconds, Tally()
    history = plane.history(MANAGERS)
    connection = load_connection(str(plane.files.kubeconfig()))
    async with HttpTransport(connection) as transport:
        stage = Stage(plane, transport, history, options.pod_groups)
        history.subscribe(stage.sight.notice)
        following = asyncio.create_task(history.run(), name="history")
        controllers = Controllers(plane.files, plane.directory, options.bug)
        waves = asyncio.create_task(_waves(options, stage, controllers, tally, end))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, waves.cancel)
        try:
            await asyncio.wait({waves, following}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
            with suppress(asyncio.CancelledError):
                await waves
        finally:
            for task in (waves, following):
                task.cancel()
            await asyncio.gather(waves, following, return_exceptions=True)
            for name in list(controllers.running):
                controllers.kill(name)
    for text in (*controllers.crashes, *controllers.tracebacks()):
        tally.bad.append(Verdict("claimctl", violations=[text]))
    tally.ended = controllers.ended
    return tally


async def _waves(
    options: Options, stage: Stage, controllers: Controllers, tally: Tally, end: float
) -> None:
    client = DocumentClient(stage.transport, "administrator")
    await install(client)
    controllers.prepare(await token(stage.transport))
    seed = options.seed
    while time.monotonic() < end and not (options.bug and tally.bad):
        seeds = range(seed, seed + options.namespaces)
        schedules = [Schedule(stage, stage.transport, number) for number in seeds]
        await _wave(stage, controllers, tally, schedules, tell=options.tell)
        seed += options.namespaces


async def _wave(
    stage: Stage,
    controllers: Controllers,
    tally: Tally,
    schedules: list[Schedule],
    *,
    tell: bool,
) -> None:
    """Some schedules side by side: a beginning, faults, and a common end."""
    rng = Random(f"wave {schedules[0].seed}")
    client = DocumentClient(stage.transport, "administrator")
    havoc = Havoc(stage, controllers, rng, client)
    tally.waves += 1
    names = rng.choice([["one"], ["one", "two"]])
    tally.pairs += len(names) == 2
    supervisor = asyncio.create_task(havoc.supervise())
    try:
        async with asyncio.timeout(CONCLUDE):
            for name in names:
                controllers.start(name)
            await asyncio.gather(*(schedule.begin() for schedule in schedules))
            await _disturb(havoc, schedules, rng.choice(PLAY))
            await asyncio.gather(*(schedule.conclude() for schedule in schedules))
            await stage.history.caught_up()
    finally:
        # also what was cut short is judged, as far as it got
        for schedule in schedules:
            schedule.judge(havoc.log)
            tally.add(schedule)
            if tell:
                print("\n".join([schedule.verdict.name, *schedule.verdict.log]), flush=True)
        supervisor.cancel()
        await asyncio.gather(supervisor, return_exceptions=True)
        tally.faults += havoc.counts
        await asyncio.gather(*(schedule.end() for schedule in schedules))
        await asyncio.to_thread(controllers.stop_all)
    stage.history.revisions.clear()
    if supervisor.done() and not supervisor.cancelled():
        supervisor.result()


async def _disturb(havoc: Havoc, schedules: list[Schedule], seconds: float) -> None:
    """People act and faults strike for some time; then all is mended."""
    tasks = [asyncio.create_task(each.play()) for each in schedules]
    tasks.append(asyncio.create_task(havoc.run()))
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await havoc.calm()


def _report(options: Options, tally: Tally) -> None:
    print(f"torture-real        {options.label}, SEED={options.seed}")
    print(f"schedules           {tally.schedules} in {tally.waves} waves, {tally.deeds} deeds")
    print(f"two controllers     {tally.pairs} waves")
    print(f"versions judged     {tally.revisions}, {tally.writes} of them by claimctl")
    print(f"by claimctl         {tally.holds} holds, {tally.releases} releases")
    print(f"faults              {tally.faults.total()}")
    for name, number in sorted(tally.faults.items()):
        print(f"  {number:6} {name}")
    print(f"  {tally.ended:6} claimctl ended by itself after an outage")
    for what, number in (
        ("violations", sum(len(verdict.violations) for verdict in tally.bad)),
        ("leaks", sum(len(verdict.leaks) for verdict in tally.bad)),
        ("stuck", sum(len(verdict.stuck) for verdict in tally.bad)),
        ("not by claimctl", len(tally.others)),
    ):
        print(f"{what:19} {number}")
    for text in tally.others:
        print(f"  {text}")
    for verdict in tally.bad:
        print("\n".join(["", verdict.name, *_wrong(verdict), *verdict.log]))


def _wrong(verdict: Verdict) -> list[str]:
    return [
        f"{name}: {text}"
        for name in ("violations", "leaks", "stuck")
        for text in getattr(verdict, name)
    ]


if __name__ == "__main__":
    sys.exit(main())
