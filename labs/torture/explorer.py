"""One schedule: the events that a seed draws for a cluster, and the verdict of the witness."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Generic, TypeVar

from kube_in_process.options import ClusterOptions
from kube_in_process.runtime.component import Pauses

from labs.runs import to_its_end
from labs.torture.faults import Faults
from labs.torture.faulty_transport import FaultPlan
from labs.torture.final_checks import FinalChecks
from labs.torture.lone_users import LoneUsers
from labs.torture.reference import LIMIT, dialects
from labs.torture.stored import log_lines
from labs.torture.testbed import BINDING, RunVerdict, Testbed, judge, opened

CHOICES = ("", "", "", "kill", "two", "lag", "pause", "compact", "jump", "thief")
"""The faults of processes; "" for none."""
Beside = Callable[[Testbed, int, Counter[str]], AbstractAsyncContextManager[None]]
"""Something that goes on beside the schedule of a seed, until the end of the block; it counts what
it does."""
Users = TypeVar("Users", bound=LoneUsers)
DEVICES = 3
"""The devices of each node: as many as the users of a schedule want."""
BY_FORCE = 0.5
"""The share of schedules at whose end all pods are force-deleted."""
PAUSES = (0.0, 0.01, 0.1, 0.3, 1.0, 4.0, 9.0)
SETTLE = 5.0
SLOW_SHARE = 0.05
"""The share of schedules whose scheduler is slower than the settle and binding times; counted
apart."""
CYCLES_SHARE = 0.4
"""The share of schedules in which pods are bound long after the scheduler has read their claim."""
BINDING_SHARE = 0.3
"""The share of schedules in which pods wait for reports of a driver before they are bound."""
AHEAD_SHARE = 0.7
"""The share of schedules in which claimctl lists pending pods before the scheduler does."""
CYCLES = (0.0, 0.0, 2.0, 6.0, 12.0, BINDING - SETTLE - 1.0)
"""Seconds. With a cache that lags as much as allowed, the longest cycle ends just in time."""


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
    ahead: bool
    binding: bool

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
            elect=rng.random() < 0.4,
            cycles=rng.random() < CYCLES_SHARE,
            ahead=Random(f"ahead {seed}").random() < AHEAD_SHARE,
            binding=Random(f"binding {seed}").random() < BINDING_SHARE,
        )

    def pauses(self) -> Pauses:
        """The waits of a scheduling cycle before and after it writes to a claim."""
        rng, longest = Random(self.seed), CYCLES[-1] if not self.slow else 2 * BINDING

        def drawn(_: object) -> tuple[float, float]:
            seconds = rng.choice((*CYCLES, longest))
            return rng.choice([(seconds, 0.0), (0.0, seconds)])

        return drawn


def explore(seed: int, *, keep: bool = False, beside: Beside | None = None) -> RunVerdict:
    """Play the schedule of a seed.

    Args:
        keep: keep a fingerprint of every revision.
        beside: what else happens beside the schedule.
    """
    schedule = Schedule.of(seed)
    verdict = RunVerdict(f"SEED={seed} ({schedule.dialect})", keeps=keep)
    verdict.counts["slow schedulers"] += schedule.slow
    to_its_end(_explore(schedule, verdict, beside), verdict, LIMIT)
    return verdict


async def _explore(schedule: Schedule, verdict: RunVerdict, beside: Beside | None) -> None:
    async with begun(schedule, LoneUsers, counts=verdict.counts) as playing:
        testbed, counts = playing.testbed, verdict.counts
        runs = beside(testbed, schedule.seed, counts) if beside is not None else nullcontext()
        async with runs:
            for _ in range(schedule.actions):
                await playing.act()
        by_force = Random(f"end {schedule.seed}").random() < BY_FORCE
        await FinalChecks(testbed, verdict, by_force).conclude()
        judge(testbed, verdict, slow=schedule.slow)
    if not verdict.good:
        playing.tell(verdict)


@dataclass
class Playing(Generic[Users]):
    """A schedule that is being played."""

    schedule: Schedule
    testbed: Testbed
    users: Users
    faults: Faults
    process_faults: ProcessFaults
    first: int
    """The revision before the users began."""

    async def act(self) -> None:
        """Play the next action of a user and a fault, and let some time pass."""
        await self.users.act()
        await self.process_faults.strike(self.users)
        await self.testbed.sleep(self.schedule.rng.choice(PAUSES))

    def tell(self, verdict: RunVerdict) -> None:
        """Write down for people what was done, and what became of it."""
        verdict.log += log_lines(self.testbed.written(self.first), self.users.log)


@asynccontextmanager
async def begun(
    schedule: Schedule,
    people: Callable[[Testbed, Random], Users],
    options: ClusterOptions | None = None,
    choices: tuple[str, ...] = CHOICES,
    counts: Counter[str] | None = None,
) -> AsyncIterator[Playing[Users]]:
    """The schedule on its own cluster, before its first action.

    Args:
        people: makes the users of it.
        options: of the cluster; those of the dialect with some conflicts if there are none.
        choices: the faults of processes.
        counts: where faults are counted.
    """
    rng = schedule.rng
    usual = replace(dialects()[schedule.dialect], devices_per_node=DEVICES, taint_rules=True)
    options = options or replace(usual, conflict_storm=rng.random() < 0.1)
    options = replace(options, seed=schedule.seed)
    async with opened(options) as testbed:
        testbed.settings = {
            "leader_elect": schedule.elect,
            "list_ahead": schedule.ahead,
            "crowd": 0,
            "checkpoint": True,
        }
        faults = Faults(rng, schedule.rate, Counter() if counts is None else counts)
        users = people(testbed, rng)
        first = testbed.cluster.store.revision
        if schedule.cycles:
            testbed.cluster.slow_scheduler(schedule.pauses())
        if schedule.binding:
            await testbed.bind_devices(Random(f"driver {schedule.seed}"))
        await users.attempt(users.begin)
        assert users.done, users.log
        process_faults = ProcessFaults(testbed, schedule, faults, choices)
        process_faults.start("one")
        testbed.cluster.handler.fault = faults
        testbed.cluster.fault_components(faults.on_components)
        yield Playing(schedule, testbed, users, faults, process_faults, first)


@dataclass
class ProcessFaults:
    """Crashes and pauses of controllers and of the cluster's components."""

    testbed: Testbed
    schedule: Schedule
    faults: Faults
    choices: tuple[str, ...]
    born: int = 0

    def start(self, name: str) -> None:
        self.born += 1
        self.testbed.start(name, self._plan())

    def _plan(self) -> FaultPlan:
        """Draw the faults of a process: most die at some time; some start with an old view."""
        rng, store = self.schedule.rng, self.testbed.cluster.store
        stale = rng.randint(max(store.revision - 30, store.compacted, 16), store.revision)
        plan = FaultPlan(
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
            self.faults.counts[name] += bool(value)
        return plan

    async def strike(self, users: LoneUsers) -> None:
        rng = self.schedule.rng
        for name, process in list(self.testbed.processes.items()):
            if process.transport.dead.is_set() or process.task.done():
                await self.testbed.kill(name)
                self.start(name)
        fault = rng.choice(self.choices)
        if fault:
            users.log.append((self.testbed.now(), fault))
            self.faults.counts[fault] += 1
        action = getattr(self, f"_{fault}", None)
        if action is not None:
            action()

    def _kill(self) -> None:
        for process in self.testbed.processes.values():
            if self.schedule.rng.random() < 0.5:
                process.transport.dead.set()
                process.task.cancel()

    def _two(self) -> None:
        if len(self.testbed.processes) < 2:
            self.start("two" if "two" not in self.testbed.processes else "one")

    def _lag(self) -> None:
        """Draw the lag of the scheduler's cache; above the settle time only in slow schedules."""
        most = 4 * SETTLE if self.schedule.slow else SETTLE - 0.5
        self.testbed.cluster.set_lag(self.schedule.rng.choice([0.0, 0.2, 2.0, most]))

    def _compact(self) -> None:
        self.testbed.cluster.store.compact()

    def _jump(self) -> None:
        for process in self.testbed.processes.values():
            seconds = self.schedule.rng.choice([-86400, -60, 60, 86400])
            process.clock.jump = timedelta(seconds=seconds)

    def _pause(self) -> None:
        """Pause a component of the cluster, and resume the one that was paused."""
        cluster = self.testbed.cluster
        for name in cluster.components:
            cluster.resume(name)
        if self.schedule.rng.random() < 0.7:
            cluster.pause(self.schedule.rng.choice(cluster.components))

    def _thief(self) -> None:
        for lease in self.testbed.cluster.admin.list("leases"):
            meta = lease["metadata"]
            spec = {"holderIdentity": "thief"}
            self.testbed.cluster.admin.patch(
                "leases", meta["namespace"], meta["name"], {"spec": spec}
            )
