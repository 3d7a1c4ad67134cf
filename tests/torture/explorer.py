"""One schedule: the events that a seed draws for a cluster, and the verdict of the witness."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random

from claimctl.embedded.runtime.component import Pauses
from tests.support.virtual import run
from tests.torture.arena import BINDING, Arena, Verdict, closed, history, judge, opened
from tests.torture.epilogue import conclude
from tests.torture.line import Plan
from tests.torture.people import People
from tests.torture.reference import LIMIT, dialects
from tests.torture.weather import Weather

PAUSES = (0.0, 0.01, 0.1, 0.3, 1.0, 4.0, 9.0)
SETTLE = 5.0
SLOW_SHARE = 0.05
"""The share of schedules whose scheduler is slower than the settle and binding times; counted
apart."""
CYCLES_SHARE = 0.4
"""The share of schedules in which pods are bound long after the scheduler has read their claim."""
CYCLES = (0.0, 0.0, 2.0, 6.0, 12.0, BINDING - SETTLE - 1.0)
"""Seconds. With a cache that lags as much as allowed, the longest cycle ends just in time."""


@dataclass
class Explored:
    """The result of a schedule, and its events."""

    verdict: Verdict
    faults: Counter[str] = field(default_factory=Counter)
    slow: bool = False


@dataclass
class Schedule:
    """The random choices of one seed."""

    seed: int
    rng: Random
    dialect: str
    slow: bool
    actions: int
    rate: float
    elect: bool
    cycles: bool

    @classmethod
    def of(cls, seed: int) -> Schedule:
        rng = Random(seed)
        return cls(
            seed=seed,
            rng=rng,
            dialect=rng.choice(list(dialects())),
            slow=rng.random() < SLOW_SHARE,
            actions=rng.choice([4, 8, 12, 20]),
            rate=rng.choice([0.0, 0.0, 0.02, 0.1, 0.3]),
            elect=rng.random() < 0.15,
            cycles=rng.random() < CYCLES_SHARE,
        )

    def pauses(self) -> Pauses:
        """The waits of a scheduling cycle before and after it writes to a claim."""
        rng, longest = Random(self.seed), CYCLES[-1] if not self.slow else 2 * BINDING

        def drawn(_: object) -> tuple[float, float]:
            seconds = rng.choice((*CYCLES, longest))
            return rng.choice([(seconds, 0.0), (0.0, seconds)])

        return drawn


def explore(seed: int, *, told: bool = False, keep: bool = False) -> Explored:
    """Play the schedule of a seed.

    Args:
        told: keep the history for people also if nothing was found.
        keep: keep a fingerprint of every revision.
    """
    schedule = Schedule.of(seed)
    explored = Explored(Verdict(f"SEED={seed} ({schedule.dialect})", keep), slow=schedule.slow)
    run(_explore(schedule, explored, told), limit=LIMIT)
    return explored


async def _explore(schedule: Schedule, explored: Explored, told: bool) -> None:
    rng = schedule.rng
    options = replace(
        dialects()[schedule.dialect], seed=schedule.seed, conflict_storm=rng.random() < 0.1
    )
    arena = await opened(options)
    arena.settings = {"leader_elect": schedule.elect}
    weather = Weather(rng, schedule.rate)
    people = People(arena, rng, schedule.dialect)
    first = arena.cluster.store.revision
    if schedule.cycles:
        arena.cluster.slow_scheduler(schedule.pauses())
    try:
        people.begin()
        fates = Fates(arena, schedule, weather)
        fates.start("one")
        arena.cluster.handler.fault = weather
        arena.cluster.fault_components(weather.on_components)
        for _ in range(schedule.actions):
            people.act()
            await fates.strike(people)
            await arena.sleep(rng.choice(PAUSES))
        await conclude(arena, explored.verdict)
        judge(arena, explored.verdict, slow=schedule.slow)
    finally:
        await closed(arena)
    explored.faults = weather.counts
    if told or not explored.verdict.good:
        explored.verdict.log += ["what was done:", *people.log, "what became of it:"]
        explored.verdict.log += history(arena.cluster, first)


@dataclass
class Fates:
    """Crashes and pauses of controllers and of the cluster's components."""

    arena: Arena
    schedule: Schedule
    weather: Weather
    born: int = 0

    def start(self, name: str) -> None:
        self.born += 1
        self.arena.start(name, self._plan())

    def _plan(self) -> Plan:
        """Draw the faults of a process: most die at some time; some start with an old view."""
        rng, store = self.schedule.rng, self.arena.cluster.store
        stale = rng.randint(max(store.revision - 30, store.compacted, 16), store.revision)
        plan = Plan(
            dies_at=rng.choice([0, 0, rng.randint(1, 120)]),
            delivered=rng.random() < 0.5,
            stale_at=rng.choice([0, 0, 0, stale]) if self.born > 1 else 0,
            withheld=rng.choice([0, 0, 0, rng.randint(1, 60)]),
        )
        for name, value in (
            ("crash", plan.dies_at),
            ("stale start", plan.stale_at),
            ("event withheld", plan.withheld),
        ):
            self.weather.counts[name] += bool(value)
        return plan

    async def strike(self, people: People) -> None:
        rng = self.schedule.rng
        for name, process in list(self.arena.processes.items()):
            if process.line.dead.is_set() or process.task.done():
                await self.arena.kill(name)
                self.start(name)
        fate = rng.choice(["", "", "", "kill", "two", "lag", "pause", "compact", "jump", "thief"])
        if fate:
            people.log.append(f"          {fate}")
            self.weather.counts[fate] += 1
        action = getattr(self, f"_{fate}", None)
        if action is not None:
            action()

    def _kill(self) -> None:
        for process in self.arena.processes.values():
            if self.schedule.rng.random() < 0.5:
                process.line.dead.set()
                process.task.cancel()

    def _two(self) -> None:
        if len(self.arena.processes) < 2:
            self.start("two" if "two" not in self.arena.processes else "one")

    def _lag(self) -> None:
        """Draw the lag of the scheduler's cache; above the settle time only in slow schedules."""
        most = 4 * SETTLE if self.schedule.slow else SETTLE - 0.5
        self.arena.cluster.set_lag(self.schedule.rng.choice([0.0, 0.2, 2.0, most]))

    def _compact(self) -> None:
        self.arena.cluster.store.compact()

    def _jump(self) -> None:
        for process in self.arena.processes.values():
            seconds = self.schedule.rng.choice([-86400, -60, 60, 86400])
            process.clock.jump = timedelta(seconds=seconds)

    def _pause(self) -> None:
        """Pause a component of the cluster, and resume the one that was paused."""
        cluster = self.arena.cluster
        for name in cluster.components:
            cluster.resume(name)
        if self.schedule.rng.random() < 0.7:
            cluster.pause(self.schedule.rng.choice(cluster.components))

    def _thief(self) -> None:
        for lease in self.arena.cluster.admin.list("leases"):
            meta = lease["metadata"]
            spec = {"holderIdentity": "thief"}
            self.arena.cluster.admin.patch(
                "leases", meta["namespace"], meta["name"], {"spec": spec}
            )
