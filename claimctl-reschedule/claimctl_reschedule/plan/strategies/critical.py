"""CriticalPods: make room for a critical pod that the scheduler's own preemption cannot help.

kube-scheduler preempts for all but devices. So this strategy acts where a pod lacks devices, where
its preemptionPolicy is Never, and where only the annotation of 2018 marks it as critical. Which
pods count and which ones leave is in docs/moving-claims.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from msgspec.structs import replace as with_unit

from claimctl.reservation.facts.pods import claim_names, unschedulable_since
from claimctl.text import counted
from claimctl.wire.nodes import Taint
from claimctl.wire.placement import admits
from claimctl.wire.traces import CRITICAL_TAINT, TAINT_VALUE_PREFIX, is_own
from claimctl_reschedule.plan.facts import by_name, is_critical, is_critical_by_priority, reference
from claimctl_reschedule.plan.fit import Unknown
from claimctl_reschedule.plan.inventory import Placement
from claimctl_reschedule.plan.policy import (
    CRITICAL_PRIORITY,
    DEFAULT_SCHEDULER,
    CriticalPods,
    MoveHeldClaims,
)
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.run import Context, Run
from claimctl_reschedule.plan.units import Unit
from claimctl_reschedule.plan.victims import (
    Loss,
    Victim,
    loss_of,
    pods_of,
    priority,
    reprieve,
    victims_among,
)
from claimctl_reschedule.plan.world import Relocation, WorldNode, WorldPod
from claimctl_reschedule.shapes.scheduling import SchedulingPod

FIRST_BACK_OFF = timedelta(minutes=10)
"""After the first attempt in vain; it doubles with each further one."""
NEXT = timedelta(seconds=2)
"""After this time a node is looked at again on which room is being made for another pod."""
RETAKEN = timedelta(seconds=30)
"""So long after the death of a process, its attempt is ended by another one."""


def rescue_critical(run: Run, context: Context, wanted: CriticalPods) -> None:
    """Plan room for each critical pod that waits, one after the other."""
    for pod in sorted(run.observed.pods, key=by_name):
        since = waiting_since(pod, wanted)
        if since and (run.observed.now - since).total_seconds() >= wanted.unschedulable_seconds:
            rescue = _Rescue(run, context, wanted, pod)
            if obstacle := rescue.obstacle() or rescue.make_room():
                run.skip(pod, context, obstacle)


def waiting_since(pod: SchedulingPod, wanted: CriticalPods) -> datetime | None:
    """Since when the pod, if it is critical, has found no node."""
    if pod.spec.node_name or pod.metadata.deleting or pod.spec.scheduling_gates:
        return None
    known = pod.spec.scheduler_name in ("", DEFAULT_SCHEDULER)
    critical = known and is_critical(pod, wanted.system_namespaces)
    return unschedulable_since(pod) if critical else None


class _Rescue:
    """The room for one pod."""

    def __init__(
        self, run: Run, context: Context, wanted: CriticalPods, pod: SchedulingPod
    ) -> None:
        self._run, self._context, self._wanted = run, context, wanted
        self._record, self._now = run.observed.record, run.observed.now
        self._pod, self._name = run.world.seen(pod), str(reference(pod))
        self._real = is_critical_by_priority(pod)
        self._priority = (pod.spec.priority or 0) if self._real else CRITICAL_PRIORITY
        value = TAINT_VALUE_PREFIX + pod.metadata.uid
        self._taint = Taint(key=CRITICAL_TAINT, value=value, effect="NoSchedule")
        self._protected: Obstacle | None = None
        """Which pods stay that would have to leave the first node on which the pod would fit."""
        self._taken: list[str] = []
        """Nodes that might do, on which room is made for another pod now."""
        self._evictor = replace(context.profile.evictor, move_held_claims=MoveHeldClaims.WHOLE_UNIT)

    # whether to act

    def obstacle(self) -> Obstacle | None:
        """Why claimctl does not act for the pod, whatever the nodes look like."""
        pod = self._pod.pod
        if obstacle := self._against_attempt(pod.metadata.uid):
            return obstacle
        if node := pod.status.nominated_node_name:
            return Obstacle(Ground.SCHEDULER_PREEMPTS, f"it is nominated for {node}")
        if self._scheduler_preempts() and not (pod.spec.resource_claims or claim_names(pod)):
            return Obstacle(Ground.SCHEDULER_PREEMPTS, "it lacks no devices")
        if not admits((self._taint,), pod.spec.tolerations):
            return Obstacle(Ground.TOLERATION_MISSING, f"{CRITICAL_TAINT}:NoSchedule")
        return None

    def _against_attempt(self, uid: str) -> Obstacle | None:
        for entry in self._record.taints:
            if entry.pod_uid == uid:
                # if its process is dead, the next run takes it up
                self._run.look_again(self._now + RETAKEN)
                text = f"room is being made on {entry.node} until {_at(entry.deadline)}"
                return Obstacle(Ground.BACKING_OFF, text)
        past = self._record.attempts.get(uid)
        if past is None or past.last is None:
            return None
        if past.count >= self._wanted.attempts:
            return Obstacle(Ground.ATTEMPTS_SPENT, f"{past.count} attempts in vain")
        until = past.last + FIRST_BACK_OFF * (1 << max(past.count - 1, 0))
        if self._now >= until:
            return None
        self._run.look_again(until)
        return Obstacle(Ground.BACKING_OFF, f"until {_at(until)}")

    def _scheduler_preempts(self) -> bool:
        """Whether kube-scheduler evicts pods for this one, for whatever is not a device."""
        return self._real and self._pod.pod.spec.preemption_policy != "Never"

    # which node

    def make_room(self) -> Obstacle | None:
        """Choose the node and the victims. Returns why there are none."""
        best: tuple[Loss, str] | None = None
        chosen: list[Victim] = []
        unknown: Obstacle | None = None
        for node in self._nodes():
            try:
                victims = self._victims(node, best)
            except _Enough as enough:
                return Obstacle(Ground.SCHEDULER_PREEMPTS, str(enough))
            except Unknown as why:
                unknown = unknown or Obstacle(Ground.FIT_UNKNOWN, f"{node.name}: {why}")
                continue
            if victims and (best is None or (loss_of(*victims), node.name) < best):
                best, chosen = (loss_of(*victims), node.name), victims
        if best is None and self._taken:
            self._run.look_again(self._now + NEXT)
            return Obstacle(Ground.ROOM_FOR_ANOTHER, ", ".join(self._taken))
        if best is None:
            text = "on no node, not even without the pods of lower priority"
            stays = self._protected or Obstacle(Ground.DOES_NOT_FIT_EVEN_EMPTY, text)
            return unknown or stays
        self._choose(self._run.world.nodes[best[1]], chosen)
        return None

    def _nodes(self) -> Iterator[WorldNode]:
        """The nodes on which the pod could be, whatever runs there."""
        try:
            problem = self._run.predictor.fitter.still(self._pod.pod)
        except Unknown:
            return
        planned = {taint.node for taint in self._run.taints}
        for node in self._run.world.nodes.values():
            if problem(node):
                continue
            critical = (taint for taint in node.node.spec.taints if taint.key == CRITICAL_TAINT)
            if node.name in planned or any(is_own(taint.key, taint.value) for taint in critical):
                # claimctl makes room there for another pod
                self._taken.append(node.name)
            else:
                yield node

    def _victims(self, node: WorldNode, best: tuple[Loss, str] | None) -> list[Victim]:
        """The least that has to go for the pod to fit; nothing if it does not fit at all, or if the
        loss here cannot be less than ``best``, a loss and its node. Raises _Enough if the pod fits,
        or the scheduler can make it fit, and Unknown if claimctl cannot judge."""
        if self._scheduler_can(node):
            raise _Enough(f"{node.name} has devices for it")
        candidates, obstacles = self._candidates(node)
        if candidates and best is not None and (loss_of(candidates[0]), node.name) > best:
            return []
        victims = reprieve(
            candidates[::-1], lambda some: bool(some) and self._fits_without(node, some)
        )
        if victims is None:
            self._note_protected(node, obstacles)
            return []
        if self._fits_without(node, []):
            raise _Enough(f"{node.name} fits it already")
        return list(victims[::-1])

    def _scheduler_can(self, node: WorldNode) -> bool:
        """Whether kube-scheduler finds devices on the node and may evict pods for the rest."""
        if not self._scheduler_preempts():
            return False
        if not isinstance(self._run.devices.place(self._pod.pod, node.name), Placement):
            return False
        with self._run.world.trial():
            for pod in self._lower(node):
                self._run.world.remove(pod)
            return not self._run.predictor.fitter.of(self._pod).problem(node)

    def _lower(self, node: WorldNode) -> list[WorldPod]:
        """The pods of lower priority on the node."""
        return [pod for pod in node.pods.values() if priority(pod) < self._priority]

    def _candidates(self, node: WorldNode) -> tuple[list[Victim], list[Obstacle]]:
        """The units that may go, cheapest first, as long as budgets and limits allow the sum, and
        the obstacles of the pods of lower priority that may not go."""
        run, context = self._run, self._context
        lower = self._lower(node)
        units, staying = victims_among(run, context, lower, self._priority, self._evictor)
        obstacles = [obstacle for _, obstacle in staying]
        allowed: list[Victim] = []
        for unit in sorted(units, key=lambda unit: (loss_of(unit), unit.unit.id)):
            obstacle = run.beyond(pods_of([*allowed, unit]), context)
            if obstacle is None:
                allowed.append(unit)
            else:
                obstacles.append(obstacle)
        return allowed, obstacles

    def _note_protected(self, node: WorldNode, obstacles: Sequence[Obstacle]) -> None:
        """Keep which pods would have to leave the node, if that would be enough."""
        if self._protected is not None or not obstacles:
            return
        pods = self._lower(node)
        all_of_them = Unit(tuple(pod.pod for pod in pods), close_source=True)
        if self._fits_without(node, [Victim(all_of_them, tuple(pods))]):
            counts = Counter(str(obstacle.reason) for obstacle in obstacles).most_common()
            reasons = ", ".join(f"{count} {reason}" for reason, count in counts)
            of_first = (other.detail for other in obstacles if other.reason == counts[0][0])
            detail = f" ({first})" if (first := next(of_first)) else ""
            self._protected = Obstacle(Ground.VICTIMS_STAY, f"on {node.name}: {reasons}{detail}")

    def _fits_without(self, node: WorldNode, victims: Sequence[Victim]) -> bool:
        with self._run.trial():
            return isinstance(self._placed_without(node, victims), Placement)

    def _placed_without(self, node: WorldNode, victims: Sequence[Victim]) -> Placement | Obstacle:
        """The place of the pod once the victims have left. They are gone from the ``World``."""
        for victim in victims:
            self._run.leave(victim.pods, victim.unit)
        if problem := self._run.predictor.fitter.of(self._pod).problem(node):
            return Obstacle(Ground.NO_OTHER_NODE, problem)
        placement = self._run.devices.place(self._pod.pod, node.name)
        if isinstance(placement, Obstacle) and placement.reason is Ground.FIT_UNKNOWN:
            raise Unknown(placement.detail)
        return placement

    # the steps

    def _choose(self, node: WorldNode, victims: Sequence[Victim]) -> None:
        run, unit = self._run, f"room for {self._name}"
        pods = pods_of(victims)
        placement = self._placed_without(node, victims)
        assert isinstance(placement, Placement)
        run.devices.take(placement)
        run.devices.commit()
        run.world.add(self._pod, node.name)
        seconds, pod = float(self._wanted.pod_scheduled_timeout_seconds), self._pod
        more = {"pod": reference(pod.pod), "timeout_seconds": seconds}
        run.close(node.name, pod.uid, unit, CRITICAL_TAINT, **more)
        why = f"{self._name} needs the room on {node.name}: {counted(len(pods), 'victim')}"
        asked = (asked for victim in victims for asked in victim.unit.reallocate)
        run.reallocations += [with_unit(reallocation, unit=unit) for reallocation in asked]
        for pod in pods:
            step = Relocation(pod, pod.pod.spec.node_name, "")
            run.chosen(step, self._context, why, unit=unit, closes=node.name)


class _Enough(Exception):
    """The pod needs no help of claimctl."""


def _at(moment: datetime | None) -> str:
    return moment.isoformat(timespec="seconds") if moment else ""
