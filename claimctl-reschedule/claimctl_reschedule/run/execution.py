"""Executes a plan, and nothing but the plan.

Groups (units, or single pods) are tried in the order of the plan. A pod that has changed since is
left alone, and no other pod takes its place. At most ``max_unavailable`` moves of one workload are
under way. A refused eviction is tried again until the deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any

import structlog

from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.kube.retry import Backoff
from claimctl.parallel import wait_any
from claimctl.wire.seams import Clock
from claimctl_reschedule.plan.plan import Plan, Reallocation
from claimctl_reschedule.plan.policy import UnplaceablePods
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.run import reallocating, rounds
from claimctl_reschedule.run.avoiding import Avoiding
from claimctl_reschedule.run.closings import Closings
from claimctl_reschedule.run.evicting import Answer, Evicted, Refused, evict, look
from claimctl_reschedule.run.groups import MoveGroup, groups_of, has_its_turn
from claimctl_reschedule.run.judging import Judgement
from claimctl_reschedule.run.landings import Landings
from claimctl_reschedule.run.memory import MoveMemory
from claimctl_reschedule.run.pod_watch import PodWatch
from claimctl_reschedule.run.records import NoRecord, Records
from claimctl_reschedule.run.signs import Signs
from claimctl_reschedule.run.steps import MoveStep, Result, RunReport
from claimctl_reschedule.run.taints import Taints

log = structlog.get_logger(__name__)

_RETRY = Backoff(first=2.0, cap=30.0)
_COALESCE = 0.1
"""Seconds after a change of a pod, for which others are waited for."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a plan is executed. Times are in seconds."""

    deadline: float = 300.0
    """After this time no further eviction begins; refused ones are given up."""
    landing: float = 60.0
    """A replacement without a node counts as pending after this time. Its workload gets no further
    move in this run."""
    poll: float = 2.0
    """The time between two looks at replacements and taints."""
    max_unavailable: int = 1
    """The most moves of one workload that are under way."""
    grace_period: int | None = None
    """For the containers of evicted pods; None means as the pods say."""
    retry: Backoff = _RETRY
    """The pauses after an eviction that was refused."""


@dataclass(slots=True, kw_only=True)
class RunParts:
    """What the runs of a process share."""

    client: Client
    clock: Clock
    records: Records
    settings: RunSettings
    signs: Signs
    lease_namespace: str = "claimctl-system"
    """Where claimctl's controller has its Lease."""
    rng: Random = field(default_factory=Random)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """When set, a run finishes the write in hand, removes its taints and ends."""
    urgent: asyncio.Event = field(default_factory=asyncio.Event)
    """When set, a run begins no further move, and waits for no replacement."""

    def parts(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(RunParts)}


@dataclass(slots=True, kw_only=True)
class Execution(RunParts):
    """One run of one plan."""

    plan: Plan
    overtaken: Callable[[], bool]
    """Whether avoidances were written since the plan was made: then those of the plan are not."""
    judge_again: Callable[[], Awaitable[Plan]]
    """Makes the plan anew, from what the pods are like now."""
    report: RunReport = field(init=False)
    _pods: PodWatch = field(init=False)
    _landings: Landings = field(init=False)
    _judgement: Judgement = field(init=False)
    _closings: Closings = field(init=False)
    _memory: MoveMemory = field(init=False)
    _asked: list[tuple[Reallocation, str]] = field(default_factory=list)
    """The requests to give claims up, with the values of the taints that they are for."""
    _standing: list[Reallocation] = field(default_factory=list)
    """Reallocation requests without an eviction in this run."""
    _growing: list[MoveGroup] = field(default_factory=list)
    """The groups for whose resize all pods are evicted, until it is granted."""
    _polled: float = 0.0
    """When the server was last asked for what no watch shows."""
    _polls: bool = False
    _patience: float = 0.0
    _until: float = 0.0
    _halted: str = ""

    def __post_init__(self) -> None:
        self.report = RunReport(self.plan, [MoveStep(move) for move in self.plan.moves])
        self._pods = PodWatch(self.client, self.clock, self.rng)
        self._landings = Landings(self.client, self.clock, self._pods)
        self._judgement = Judgement(self._landings, self.report, self.judge_again)
        taints = Taints(self.client, self.clock, self.records)
        self._closings = Closings(taints, self._landings, self.signs, self.settings.landing)
        self._memory = MoveMemory(self.records, self.clock, self.report)

    async def run(self) -> RunReport:
        """Execute the plan. A failed request ends the run and is in the report."""
        self._until = self.clock.monotonic() + self.settings.deadline
        groups = groups_of(self.plan, self.report.steps)
        try:
            groups = await self._keep_off(groups)
            if any(not step.move.cleans for step in self.report.steps):
                await self._memory.begin()
            for group in await self._execute(groups):
                self._give_up(group)
            await self._settle()
        except KubeError as error:
            self.report.failure = str(error)
        await self._clean_up(groups_of(self.plan, self.report.steps))
        await self._pods.stop()
        self.report.interrupted = self.stop.is_set()
        self.signs.ended(self.report)
        return self.report

    async def _keep_off(self, groups: list[MoveGroup]) -> list[MoveGroup]:
        """Keep pods off nodes before any eviction; the groups that may still be evicted."""
        avoiding = Avoiding(self.client, self.clock, self.records)
        steps = self.plan.avoidances
        try:
            self.report.notes += await avoiding.remember(steps, self.overtaken)
        except NoRecord as error:
            why = f"{error}; without a record no pod is kept off a node"
            self.report.notes.append(why)
            return self._without_unplaceable(groups, Obstacle(Ground.FAILED, why))
        if steps and self.overtaken():
            why = "another pod was refused meanwhile"
            return self._without_unplaceable(groups, Obstacle(Ground.CHANGED, why))
        for step in steps:
            self.signs.avoided(step)
        for asked in self.plan.reallocations:
            if not asked.unit:
                self._standing.append(asked)
                await self._ask(asked, reallocating.FOR_AVOIDANCE)
        self._patience = self.clock.monotonic() + self.settings.landing
        for release in self.plan.releases:
            if self.stop.is_set():
                break
            await avoiding.release(release.pod)
        return groups

    def _without_unplaceable(self, groups: list[MoveGroup], why: Obstacle) -> list[MoveGroup]:
        """Leave the groups that rely on avoidances; the others."""
        others = [group for group in groups if group.moves[0].strategy != UnplaceablePods.name]
        for group in groups:
            if group not in others:
                self._leave(group, why)
        return others

    async def _execute(self, groups: Sequence[MoveGroup]) -> list[MoveGroup]:
        """Try the groups; those that are left were not finished in time."""
        waiting = list(groups)
        postponed: list[MoveGroup] = []
        while waiting and not self._is_over():
            if self.urgent.is_set():
                postponed += [group for group in waiting if not (group.rescues or group.started)]
                waiting = [group for group in waiting if group.rescues or group.started]
            for group in list(waiting):
                if self._is_over():
                    break
                if self._is_blocked(group) or (
                    self._may_start(group)
                    and (await self._is_outdated(group) or await self._attempt(group))
                ):
                    waiting.remove(group)
            if waiting and not self._is_over():
                await self._tick()
        return [*waiting, *postponed]

    def _is_over(self) -> bool:
        return bool(self.stop.is_set() or self._halted) or self.clock.monotonic() >= self._until

    def _may_start(self, group: MoveGroup) -> bool:
        if self.clock.monotonic() < group.retry_at:
            return False
        room = 1 if group.is_unit else self.settings.max_unavailable
        busy = any(self._landings.in_flight[workload] >= room for workload in group.workloads)
        if busy and not group.rescues:
            return False
        if self._judgement.must_wait(group):
            return False
        return not self._closings.delay(group) and has_its_turn(group, self._landings)

    async def _is_outdated(self, group: MoveGroup) -> bool:
        """Leave a group that the cluster as it is now does not call for."""
        why = await self._judgement.against(group)
        if why:
            self._leave(group, Obstacle(Ground.CHANGED, why))
        return bool(why)

    def _is_blocked(self, group: MoveGroup) -> bool:
        """Leave a group whose workload has a replacement that finds no node. A critical pod does
        not wait for the replacements of other victims."""
        stuck = self._landings.stuck
        if group.rescues or not (stuck if group.emptying else stuck & group.workloads):
            return False
        why = "an earlier replacement of the workload has no node"
        self._leave(group, Obstacle(Ground.REPLACEMENT_PENDING, why))
        return True

    async def _attempt(self, group: MoveGroup) -> bool:
        """Try a group once; whether it is finished, in one way or the other."""
        with self.signs.step(group):
            for step in group.steps:
                answer = await look(self.client, step.move, unsure=step.uid in group.unsure)
                if isinstance(answer, Evicted):
                    await self._note_eviction(group, step)
                elif answer is not None:
                    return self._left(group, step, answer)
            if await self._is_prepared(group):
                # before the evictions: the controller then lists no replacement in the claim, and
                # releases it as soon as the last pod is done
                for reallocation in group.reallocations:
                    value = group.taint.value if group.taint else reallocating.FOR_AVOIDANCE
                    await self._ask(reallocation, value)
                await self._evict_all(group)
            return self._is_finished(group)

    async def _ask(self, reallocation: Reallocation, taint: str) -> None:
        self._asked.append((reallocation, taint))
        self.report.notes += await reallocating.ask(self.client, reallocation, taint)

    async def _is_prepared(self, group: MoveGroup) -> bool:
        """Whether the pods may be evicted now. It writes first what an eviction needs."""
        left = await reallocating.against_reallocations(
            self.client, group.reallocations, self.lease_namespace, self.clock.now()
        )
        if left is not None:
            group.leave(left)
            return False
        if group.is_unit and not await self._is_allowed(group):
            return False
        return await self._closings.close(group) and await self._begin_round(group)

    async def _is_allowed(self, group: MoveGroup) -> bool:
        """Whether the server would accept each eviction of a unit."""
        for step in group.steps:
            if step.result is Result.EVICTED:
                continue
            answer = await evict(self.client, step.move, self.settings.grace_period, dry_run=True)
            if not isinstance(answer, Evicted):
                self._note(group, step, answer)
                return False
        return True

    async def _begin_round(self, group: MoveGroup) -> bool:
        """Note the round of a resize; False if the resize waits no longer."""
        if await self._waits_no_longer(group):
            return False
        if group.resize is not None and not group.noted:
            step, now = group.resize, self.clock.now()
            try:
                await self.records.change(lambda status: rounds.with_round(status, step, now))
            except NoRecord as error:
                why = f"{error}; without a record no pod is evicted for a resize"
                group.leave(Obstacle(Ground.FAILED, why))
                return False
            group.noted = True
        return True

    async def _waits_no_longer(self, group: MoveGroup) -> bool:
        """Leave the rest of a group alone whose resize needs no room any more."""
        left = await rounds.look(self.client, group.resize) if group.resize is not None else None
        if left is not None:
            group.leave(left)
        return left is not None

    async def _evict_all(self, group: MoveGroup) -> None:
        for step in group.steps:
            while step.result is Result.PLANNED:
                if group.started and await self._waits_no_longer(group):
                    return
                answer = await self._in_turn(step) or await self._evict(group, step)
                if isinstance(answer, Evicted):
                    break
                self._note(group, step, answer)
                if isinstance(answer, Obstacle) or not group.is_unit:
                    return
                # a unit is finished before anything else begins
                while self.clock.monotonic() < group.retry_at and not self._is_over():
                    await self._tick()
                if self._is_over():
                    return

    async def _in_turn(self, step: MoveStep) -> Obstacle | None:
        """Wait until the pod may leave beside the others of its workload; why it stays then."""
        owner = step.move.owner
        if not step.move.paced or owner is None:
            return None
        flying, waited = self._landings.in_flight, False
        while flying[owner.workload_uid] >= self.settings.max_unavailable:
            if self._is_over():
                return Obstacle(Ground.DEADLINE, "the deadline of the run is over")
            await self._tick()
            waited = True
        if owner.workload_uid in self._landings.stuck:
            return Obstacle(Ground.REPLACEMENT_PENDING, "an earlier replacement has no node")
        seen = await look(self.client, step.move) if waited else None
        return seen if isinstance(seen, Obstacle) else None

    async def _evict(self, group: MoveGroup, step: MoveStep) -> Answer:
        if step.uid in group.unsure:
            seen = await look(self.client, step.move, unsure=True)
            if isinstance(seen, Evicted):
                await self._note_eviction(group, step)
            if seen is not None:
                return seen
        if not step.move.cleans:
            await self._landings.prepare(step.move)
        answer = await evict(self.client, step.move, self.settings.grace_period)
        if isinstance(answer, Evicted):
            await self._note_eviction(group, step)
        return answer

    async def _note_eviction(self, group: MoveGroup, step: MoveStep) -> None:
        if step.result is Result.EVICTED:
            return
        step.result, step.reason, step.detail = Result.EVICTED, None, ""
        if step.move.cleans:
            self.signs.finish(step)
            return
        await self._landings.prepare(step.move)
        # a claim that is given up may come late
        patient = group.taint is not None and (group.reallocations or not group.emptying)
        within = group.taint.timeout_seconds if group.taint and patient else self.settings.landing
        self._landings.begin(step.move, within)
        self._memory.evicted(step)
        self.signs.finish(step)

    def _note(self, group: MoveGroup, step: MoveStep, answer: Answer) -> None:
        """Keep why a step was not done, and when it may be tried again."""
        if isinstance(answer, Obstacle):
            self._left(group, step, answer)
        elif isinstance(answer, Refused):
            if answer.unsure:
                group.unsure.add(step.uid)
            step.reason, step.detail = answer.reason, answer.detail
            group.tries += 1
            pause = self.settings.retry.delay(group.tries, self.rng)
            group.retry_at = self.clock.monotonic() + pause

    def _left(self, group: MoveGroup, step: MoveStep, why: Obstacle) -> bool:
        if group.started and group.is_unit:
            self._partly(group)
            step.detail = why.detail
        else:
            group.leave(why, step)
        return True

    def _is_finished(self, group: MoveGroup) -> bool:
        """Whether nothing of the group is left to do. Then say what became of it."""
        if any(step.result is Result.PLANNED for step in group.steps):
            if not (group.is_unit and group.started and self._is_over()):
                return False
            self._partly(group)
        self._tell(group)
        if group.resize is not None and group.started:
            self.signs.made_room(group.resize, group)
            self._growing.append(group)
            self._patience = self.clock.monotonic() + self.settings.landing
        return True

    def _partly(self, group: MoveGroup) -> None:
        for step in group.steps:
            if step.result is not Result.EVICTED:
                why = step.detail or "another pod of the unit was refused"
                detail = f"{len(group.evicted)} of the unit are evicted: {why}"
                step.leave(Obstacle(Ground.PARTLY_EVICTED, detail))
        self._halted = "a unit is evicted in part"

    def _give_up(self, group: MoveGroup) -> None:
        """Say why a group was not finished."""
        if group.is_unit and group.started:
            self._partly(group)
        refused = next((step for step in group.steps if step.reason is not None), None)
        if refused is not None and refused.reason is not None:
            self._leave(group, Obstacle(refused.reason, refused.detail), refused)
        elif self.stop.is_set():
            self._leave(group, Obstacle(Ground.INTERRUPTED, "the run was interrupted"))
        else:
            urgent = "a critical pod needs room first" if self.urgent.is_set() else ""
            why = self._halted or urgent or "the deadline of the run is over"
            self._leave(group, Obstacle(Ground.DEADLINE, why))

    def _leave(self, group: MoveGroup, why: Obstacle, cause: MoveStep | None = None) -> None:
        group.leave(why, cause)
        self._tell(group)

    def _tell(self, group: MoveGroup) -> None:
        for step in group.steps:
            if step.result is Result.LEFT:
                self.signs.finish(step)

    async def _tick(self) -> None:
        """Wait until a pod changes, ``poll`` seconds at most; then look at pods and taints."""
        await wait_any(self.stop, self.urgent, self._pods.changed, seconds=self.settings.poll)
        if not self.stop.is_set():
            # other pods change at about the same time
            await self.clock.sleep(_COALESCE)
        self._pods.changed.clear()
        now = self.clock.monotonic()
        self._polls = now >= self._polled + self.settings.poll
        if self._polls:
            self._polled = now
            await self._closings.renew()
        await self._landings.look()
        await self._closings.lift_what_is_done(polls=self._polls)
        self._note_outcomes()
        await self._memory.keep()

    def _note_outcomes(self) -> None:
        by_uid = {flight.move.pod.uid: flight for flight in self._landings.flights}
        for step in self.report.steps:
            flight = by_uid.get(step.uid)
            if flight is not None and not flight.open:
                step.outcome, step.landed = flight.outcome, flight.landed

    async def _settle(self) -> None:
        """Wait for the replacements, and until no taint or request is needed. If another critical
        pod waits for its turn, no replacement is waited for: the next run is for that pod."""
        hurries = any(skip.reason is Ground.ROOM_FOR_ANOTHER for skip in self.plan.skipped)
        while not self.stop.is_set():
            if self.clock.monotonic() >= self._patience:
                self._standing.clear()
                self._growing.clear()
            awaited = self._landings.is_awaited() or self._standing or self._growing
            if not self._closings.open and (hurries or self.urgent.is_set() or not awaited):
                break
            await self._tick()
            if self._polls:
                self._growing = [
                    group
                    for group in self._growing
                    if group.resize and await rounds.look(self.client, group.resize) is None
                ]
                self._standing = [
                    asked
                    for asked in self._standing
                    if await reallocating.waits(self.client, asked)
                ]

    async def _clean_up(self, groups: Sequence[MoveGroup]) -> None:
        """Remove the taints and requests that are left, remember, and look who was helped."""
        try:
            await self._closings.lift_all()
            while self._asked:
                asked, taint = self._asked.pop()
                await reallocating.withdraw(self.client, asked.reservation, asked.namespace, taint)
            self._note_outcomes()
            await self._memory.keep(last=True)
            for group in groups:
                if (pod := group.needs_room) is not None:
                    self.report.helps.append(await rounds.see_help(self.client, group, pod))
        except KubeError as error:
            self.report.failure = self.report.failure or str(error)
            if self._closings.open:
                text = "taints are left: 'claimctl reschedule --release-taints' removes them"
                self.report.notes.append(text)
