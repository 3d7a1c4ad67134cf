"""DeferredResizes: make room on a node for a resize that the kubelet there has deferred.

The kubelet's own count decides what fits (``plan.kubelet``). Of all sets of victims that are
enough, the one with the least ``_cost`` is taken. The rules are in docs/reschedule-rules.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from claimctl.text import counted
from claimctl_reschedule.plan.facts import reference
from claimctl_reschedule.plan.kubelet import Account, Waiting, account, deferred
from claimctl_reschedule.plan.observed import Gate
from claimctl_reschedule.plan.plan import ResizeStep
from claimctl_reschedule.plan.policy import CRITICAL_PRIORITY, DeferredResizes, StandBack
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.run import Context, Run
from claimctl_reschedule.plan.victims import Victim, fewest, pods_of, priority, victims_among
from claimctl_reschedule.plan.world import Relocation, WorldNode, WorldPod

SKEW = timedelta(minutes=1)
"""A round that lies further in the future was noted by another clock, and is old."""


def make_room_for_resizes(run: Run, context: Context, wanted: DeferredResizes) -> None:
    """Plan room for the resizes that wait, node by node, in the order of the kubelet."""
    for node in run.world.nodes.values():
        resized = [pod.pod for pod in node.pods.values() if deferred(pod.pod) is not None]
        if not resized:
            continue
        try:
            waiting = account(node).waiting
        except ValueError as error:
            for pod in resized:
                run.skip(pod, context, Obstacle(Ground.UNREADABLE, str(error)))
            continue
        for waiting_pod in waiting:
            room = _Room(run, context, wanted, node, waiting_pod)
            if obstacle := room.obstacle() or room.make():
                run.skip(waiting_pod.pod.pod, context, obstacle)


_Cost = tuple[int, int, int, int, float, tuple[str, ...]]
"""Pods, the highest priority, the sum of priorities, workloads hit, the age of the oldest, and the
names: the less, the better. Disruption budgets are never violated."""


def _cost(victims: Sequence[Victim]) -> _Cost:
    pods = pods_of(victims)
    return (
        len(pods),
        max((victim.priority for victim in victims), default=0),
        sum(map(priority, pods)),
        len({pod.owner_uid for pod in pods}),
        -min(map(_started, pods), default=0.0),
        tuple(sorted(pod.uid for pod in pods)),
    )


def _started(pod: WorldPod) -> float:
    started = pod.pod.status.start_time or pod.pod.metadata.creation_timestamp
    return started.timestamp() if started else 0.0


def _since(victim: Victim) -> float:
    """When its oldest pod started, in seconds."""
    return min(map(_started, victim.pods))


class _Room:
    """The room for one resize."""

    def __init__(
        self, run: Run, context: Context, wanted: DeferredResizes, node: WorldNode, waiting: Waiting
    ) -> None:
        self._run, self._context, self._wanted = run, context, wanted
        self._observed, self._node, self._waiting = run.observed, node, waiting
        self._pod = waiting.pod
        # earlier resizes of this plan have changed the node
        self._account: Account = account(node)
        self._going = frozenset(uid for uid, pod in node.pods.items() if pod.pod.metadata.deleting)
        """The pods that leave in any case. No pod is evicted for room that they give."""

    # whether to act

    def obstacle(self) -> Obstacle | None:
        """Why claimctl makes no room for the resize, whichever pods could be evicted."""
        rules = (self._of_pod, self._of_node, self._against_fit, self._of_scheduler, self._of_round)
        return next(filter(None, (rule() for rule in rules)), None)

    def _of_pod(self) -> Obstacle | None:
        pod, condition = self._pod.pod, deferred(self._pod.pod)
        generation = pod.metadata.generation
        seen = condition.observed_generation if condition is not None else 0
        if seen and seen != generation:
            return Obstacle(Ground.RESIZE_NOT_OBSERVED, f"generation {generation}, seen {seen}")
        if pod.spec.preemption_policy == "Never":
            return Obstacle(Ground.NEVER_PREEMPTS)
        if (pod.spec.priority or 0) >= CRITICAL_PRIORITY:
            return Obstacle(Ground.KUBELET_PREEMPTS, f"priority {pod.spec.priority}")
        waits = (self._observed.now - self._waiting.since).total_seconds()
        if waits < self._wanted.deferred_seconds:
            text = f"{waits:.0f} s < {self._wanted.deferred_seconds:.0f} s"
            return Obstacle(Ground.RESIZE_YOUNG, text)
        return None

    def _of_node(self) -> Obstacle | None:
        node = self._node
        if node.closed:
            return Obstacle(Ground.NODE_NOT_READY, f"{node.name}: {node.closed}")
        unreadable = self._run.world.unreadable.keys() & node.pods.keys()
        if unreadable:
            uid = min(unreadable)
            return Obstacle(Ground.UNREADABLE, self._run.world.unreadable[uid])
        policy = node.node.spec.pod_preemption_policy
        forbidden = policy.disable_resize_preemption if policy is not None else ()
        if forbidden and self._wanted.stand_back is not StandBack.NEVER:
            return Obstacle(Ground.NODE_FORBIDS, f"{node.name}: {', '.join(forbidden)}")
        return None

    def _against_fit(self) -> Obstacle | None:
        if self._pod.uid in self._account.granted():
            return Obstacle(Ground.ROOM_IS_COMING, f"{self._node.name} has room for it")
        if self._going and self._pod.uid in self._account.granted(self._going):
            text = f"{counted(len(self._going), 'pod')} on {self._node.name} being deleted"
            return Obstacle(Ground.ROOM_IS_COMING, text)
        return None

    def _of_scheduler(self) -> Obstacle | None:
        if self._wanted.stand_back is StandBack.ALWAYS:
            return Obstacle(Ground.LEFT_TO_SCHEDULER)
        if self._wanted.stand_back is StandBack.NEVER or self._observed.resize_gate is Gate.OFF:
            return None
        if self._observed.resize_gate is Gate.ON:
            text = "the API server has the gate InPlacePodVerticalScalingSchedulerPreemption"
            return Obstacle(Ground.SCHEDULER_PREEMPTS, text)
        return Obstacle(Ground.GATE_UNKNOWN, "/metrics of the API server may not be read")

    def _of_round(self) -> Obstacle | None:
        record = self._observed.record
        past = record.rounds.get(self._pod.uid)
        generation = self._pod.pod.metadata.generation
        if past is None or past.since is None or past.generation != generation:
            return None
        since = self._observed.now - past.since
        settle = timedelta(seconds=self._wanted.settle_seconds)
        if -SKEW <= since < settle:
            text = f"{counted(len(past.victims), 'victim')}, {since.total_seconds():.0f} s ago"
            return Obstacle(Ground.ROOM_ALREADY_MADE, text)
        here = (self._node.pods.get(uid) for uid in past.victims)
        if any(pod is not None and not pod.pod.metadata.deleting for pod in here):
            return None  # victims of the round were never evicted
        cpu, memory = self._account.free(past.victims)
        if cpu > past.free_cpu or memory > past.free_memory:
            return None  # the node has more room than was expected when the round began
        return Obstacle(
            Ground.ROOM_ALREADY_MADE, f"{counted(len(past.victims), 'victim')}, in vain"
        )

    # which victims

    def make(self) -> Obstacle | None:
        """Choose the victims. Returns why there are none."""
        below, evictor = priority(self._pod), self._context.profile.evictor
        lower = (pod for pod in self._node.pods.values() if priority(pod) < below)
        units, _ = victims_among(self._run, self._context, lower, below, evictor)
        # a claim that keeps a unit on this node leaves its replacements without a place
        candidates = [victim for victim in units if not victim.unit.close_source]
        # two orders in which units are spared: the dear ones first, and the small ones first
        dear = sorted(
            candidates, key=lambda victim: (-victim.priority, _since(victim), victim.unit.id)
        )
        small = sorted(
            candidates, key=lambda victim: (self._share(victim), -victim.priority, _since(victim))
        )
        victims = None
        uids = frozenset(uid for candidate in candidates for uid in candidate.uids)
        # if it does not fit without all of them, no set needs to be looked at
        if self._waiting.fits(self._account.free(uids | self._going)):
            victims = fewest(
                (dear, small), self._enough, _cost, lambda chosen: len(pods_of(chosen))
            )
        if victims is None:
            text = f"{counted(len(candidates), 'unit')} on {self._node.name} could leave"
            return Obstacle(Ground.NOT_ENOUGH, text)
        self._choose(victims)
        return None

    def _share(self, victim: Victim) -> float:
        """How much of the largest lack the unit gives, at most all of it, per pod."""
        held = [self._account.held.get(pod.uid, (0, 0)) for pod in victim.pods]
        gives = (sum(cpu for cpu, _ in held), sum(memory for _, memory in held))
        waiting, free = self._waiting, self._account.free()
        lacks = [
            (wanted - has - left, given)
            for wanted, has, left, given in zip(
                waiting.desired, waiting.held, free, gives, strict=True
            )
        ]
        shares = [min(given / lack, 1.0) for lack, given in lacks if lack > 0]
        return sum(shares) / len(victim.pods)

    def _enough(self, victims: Sequence[Victim]) -> bool:
        pods = pods_of(victims)
        uids = frozenset(pod.uid for pod in pods)
        if self._pod.uid not in self._account.granted(uids | self._going):
            return False
        return not pods or self._run.beyond(pods, self._context) is None

    # the steps

    def _choose(self, victims: Sequence[Victim]) -> None:
        run, meta = self._run, self._pod.pod.metadata
        pods = pods_of(victims)
        uids = tuple(sorted(pod.uid for pod in pods))
        unit = f"room for the resize of {meta.namespace}/{meta.name}"
        why = f"{meta.namespace}/{meta.name} is to grow on {self._node.name}"
        cpu, memory = self._account.free({*uids, *self._going})
        run.resizes.append(
            ResizeStep(
                pod=reference(self._pod.pod),
                generation=meta.generation,
                unit=unit,
                victims=uids,
                # a node that has shrunk may have less than its pods hold
                free_cpu=max(cpu, 0),
                free_memory=max(memory, 0),
            )
        )
        for victim in victims:
            run.leave(victim.pods, victim.unit)
            run.devices.commit()
        for pod in pods:
            step = Relocation(pod, pod.pod.spec.node_name, "")
            run.chosen(step, self._context, f"{why}: {counted(len(pods), 'victim')}", unit=unit)
