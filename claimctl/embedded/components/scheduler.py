"""The scheduler: finds a node and devices for each pod, and binds it when its claims are written.

It decides on a view that may lag (``Timings.scheduler_cache_lag``). A pod is bound before the
next one is planned, unless the cluster plays the conflict storm of shared claims.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from claimctl.embedded.components.binding import Binder, Plan, PlannedClaim, Refused
from claimctl.embedded.components.devices import Identity, Inventory
from claimctl.embedded.components.fit import node_matches, reason_against, summary
from claimctl.embedded.components.objects import condition, deleting, key_of, name, namespace, uid
from claimctl.embedded.components.parking import (
    DEVICES,
    NODES,
    Parking,
    claim_topic,
    group_topic,
)
from claimctl.embedded.components.podgroups import group_key
from claimctl.embedded.components.pods import (
    PodClaim,
    allocation_of,
    ended,
    group_name,
    is_group,
    node_name,
    pod_claims,
    reserved_for,
)
from claimctl.embedded.errors import StatusError
from claimctl.embedded.runtime import Component, Context
from claimctl.embedded.views import Change, Object

Task = tuple[str, str, str]
"""('pod', namespace, name) to plan, or ('bind', '', UID) to go on with a binding."""


class Wait(Exception):
    """A pod waits without a condition or an Event, until there is news on one of the topics."""

    def __init__(self, *topics: str) -> None:
        super().__init__(*topics)
        self.topics = topics


class Unschedulable(Exception):
    """No node will do; ``topics`` are the news that might change that."""

    def __init__(self, message: str, *topics: str) -> None:
        super().__init__(message)
        self.topics = topics


@dataclass
class _Binding:
    plan: Plan
    steps: Iterator[float] = field(repr=False)


class Scheduler(Component[Task]):
    name = "scheduler"
    manager = "kube-scheduler"
    reporter = "default-scheduler"

    def __init__(self, context: Context) -> None:
        self._parking = Parking()
        self._bindings: dict[str, _Binding] = {}
        self._promised: dict[Identity, str] = {}
        self._errors: dict[str, int] = {}
        self._assumed: dict[str, str] = {}
        super().__init__(context)

    def watch(self) -> None:
        timings = self.context.timings
        self.views = self.context.feed.views(timings.scheduler_cache_lag)
        pods = self.views["pods"]
        pods.index("node", lambda pod: (node_name(pod),) if node_name(pod) else ())
        pods.index("group", group_key)
        self._inventory = Inventory(self.views)
        self._binder = Binder(self.context, self.api, self.views)
        pods.subscribe(self._pod_changed)
        self.views["resourceclaims"].subscribe(self._claim_changed)
        self.views["nodes"].subscribe(self._node_changed)
        self.views["podgroups"].subscribe(lambda change: self._wake(group_topic(*change.key)))
        self.views["resourceslices"].subscribe(lambda _: self._wake(DEVICES))
        self.views["deviceclasses"].subscribe(lambda _: self._wake(DEVICES))
        for pod in pods.items():
            self._pod_changed(Change(key_of(pod), None, pod))

    def sync(self, key: Task) -> None:
        task, space, plain = key
        if task == "bind":
            self._advance(plain)
            return
        pod = self.views["pods"].get(space, plain)
        if pod is not None and self._to_schedule(pod):
            self._schedule(pod)

    # What is news

    def _wake(self, topic: str) -> None:
        for key in self._parking.news(topic):
            self.queue.add(("pod", *key))

    def _pod_changed(self, change: Change) -> None:
        pod = change.object
        if group_name(pod):
            self._wake(group_topic(namespace(pod), group_name(pod)))
        if change.new is None or node_name(pod) or ended(pod):
            self._forget(change)
        elif change.old is None or _news(change.old, pod):
            self._parking.leave(change.key)
            self.queue.add(("pod", *change.key))

    def _forget(self, change: Change) -> None:
        self._parking.leave(change.key)
        self._errors.pop(uid(change.object), None)
        self._assumed.pop(uid(change.object), None)

    def _claim_changed(self, change: Change) -> None:
        self._wake(claim_topic(*change.key))
        freed = change.old is not None and allocation_of(change.old) is not None
        if freed and (change.new is None or allocation_of(change.new) is None):
            self._wake(DEVICES)

    def _node_changed(self, change: Change) -> None:
        if change.old is None or change.new is None or _fitness(change.old) != _fitness(change.new):
            self._wake(NODES)

    # One pod

    def _to_schedule(self, pod: Object) -> bool:
        wanted = not node_name(pod) and not deleting(pod) and not ended(pod)
        ours = pod["spec"].get("schedulerName", "default-scheduler") == "default-scheduler"
        return wanted and ours and uid(pod) not in self._assumed

    def _schedule(self, pod: Object) -> None:
        try:
            plan = self._plan(pod)
        except Wait as wait:
            self._parking.park(key_of(pod), wait.topics)
        except Unschedulable as why:
            self._parking.park(key_of(pod), why.topics)
            self._fail(pod, "Unschedulable", str(why))
        else:
            self._begin(plan)

    def _plan(self, pod: Object) -> Plan:
        group = self._gate(pod)
        claims = tuple(self._claims(pod, group))
        self._check_in_process(claims)
        missing = [each.seen for each in claims if each.allocation is None]
        missing = [claim for claim in missing if allocation_of(claim) is None]
        node, allocations = self._place(pod, claims, missing)
        found = {uid(claim): each for claim, each in zip(missing, allocations, strict=True)}
        planned = tuple(
            PlannedClaim(each.seen, each.group, found.get(uid(each.seen))) for each in claims
        )
        return Plan(pod, node, planned, tuple(found))

    def _gate(self, pod: Object) -> Object | None:
        """The pod's PodGroup, once it is complete."""
        if pod["spec"].get("schedulingGates"):
            raise Wait
        plain = group_name(pod)
        if not plain or not self.context.features.scheduler_pod_groups:
            return None
        topic = group_topic(namespace(pod), plain)
        group = self.views["podgroups"].get(namespace(pod), plain)
        if group is None:
            raise Wait(topic)
        gang = (group["spec"].get("schedulingPolicy") or {}).get("gang")
        members = self.views["pods"].by("group", f"{namespace(pod)}/{plain}")
        alive = [each for each in members if not ended(each) and not deleting(each)]
        if gang and len(alive) < gang["minCount"]:
            raise Wait(topic)
        return group

    def _claims(self, pod: Object, group: Object | None) -> Iterator[PlannedClaim]:
        for each in pod_claims(pod, group):
            if each.claim is None:
                raise Wait
            if not each.claim:
                continue
            yield PlannedClaim(self._usable(pod, each), group if each.group else None, None)

    def _usable(self, pod: Object, wanted: PodClaim) -> Object:
        assert wanted.claim is not None
        claim = self.views["resourceclaims"].get(namespace(pod), wanted.claim)
        if claim is None or deleting(claim):
            raise Wait(claim_topic(namespace(pod), wanted.claim))
        return claim

    def _check_in_process(self, claims: tuple[PlannedClaim, ...]) -> None:
        busy = {each for binding in self._bindings.values() for each in binding.plan.allocating}
        for each in claims:
            if uid(each.seen) in busy:
                shown = "/".join(key_of(each.seen))
                text = f"resource claim {shown} is in the process of being allocated"
                raise Unschedulable(
                    self._no_node(text, "no new claims to deallocate"),
                    claim_topic(*key_of(each.seen)),
                )

    def _place(
        self, pod: Object, claims: tuple[PlannedClaim, ...], missing: list[Object]
    ) -> tuple[str, list[Object]]:
        reasons: list[str] = []
        unusable: dict[str, Object] = {}
        for node in self._nodes():
            reason = reason_against(pod, node)
            if not reason:
                away = [each.seen for each in claims if not _reaches(each.seen, node)]
                unusable |= {uid(claim): claim for claim in away}
                reason = "resourceclaim not available on the node" if away else ""
            if not reason:
                allocations = self._inventory.allocate(missing, node, self._is_promised)
                if allocations is not None:
                    return name(node), allocations
                reason = "cannot allocate all claims"
            reasons.append(reason)
        topics = (NODES, DEVICES, *(claim_topic(*key_of(each.seen)) for each in claims))
        # Parked before PostFilter, so that what PostFilter gives up is news to the pod itself.
        self._parking.park(key_of(pod), topics)
        after = self._post_filter(pod, claims, list(unusable.values()))
        raise Unschedulable(self._no_node(summary(reasons), after), *topics)

    def _nodes(self) -> list[Object]:
        """Emptier nodes first; of equals the older one."""
        assumed = list(self._assumed.values())
        pods = self.views["pods"]
        return sorted(
            self.views["nodes"].items(),
            key=lambda node: pods.count("node", name(node)) + assumed.count(name(node)),
        )

    def _is_promised(self, identity: Identity) -> bool:
        return identity in self._promised

    def _no_node(self, why: str, after: str) -> str:
        nodes = len(self.views["nodes"])
        tail = f"0/{nodes} nodes are available: {nodes} Preemption is not helpful for scheduling."
        return f"0/{nodes} nodes are available: {why}. {after}, preemption: {tail}"

    # PostFilter

    def _post_filter(
        self, pod: Object, claims: tuple[PlannedClaim, ...], unusable: list[Object]
    ) -> str:
        """Give up what only this pod could hold; the words for the condition."""
        if not claims:
            return "no new claims to deallocate"
        for claim in unusable:
            if all(each["uid"] == uid(pod) for each in reserved_for(claim)):
                self._write_status(claim, allocation=None)
                return "deallocation of ResourceClaim completed"
        for each in claims:
            if each.group is not None and self._idle(each.group) and _only_group(each.seen):
                self._write_status(each.seen)
        return "still not schedulable"

    def _idle(self, group: Object) -> bool:
        members = self.views["pods"].by("group", "/".join(key_of(group)))
        return not any(node_name(each) for each in members)

    def _write_status(self, claim: Object, **parts: None) -> None:
        status = {**(claim.get("status") or {}), "reservedFor": None, **parts}
        kept = {key: value for key, value in status.items() if value is not None}
        try:
            written = self.api.update("resourceclaims", {**claim, "status": kept}, "status")
        except StatusError:
            return
        self.views["resourceclaims"].assume(written)

    # Binding

    def _begin(self, plan: Plan) -> None:
        self._mark_group(plan)
        self._assumed[uid(plan.pod)] = plan.node
        for each in plan.claims:
            for result in ((each.allocation or {}).get("devices") or {}).get("results") or ():
                identity = (result["driver"], result["pool"], result["device"])
                self._promised[identity] = uid(plan.pod)
        self._bindings[uid(plan.pod)] = _Binding(plan, self._binder.steps(plan))
        self.queue.add_first(("bind", "", uid(plan.pod)))

    def _mark_group(self, plan: Plan) -> None:
        group = self._gate(plan.pod)
        if group is None or condition(group, "PodGroupScheduled") is not None:
            return
        scheduled = {
            "type": "PodGroupScheduled",
            "status": "True",
            "reason": "Scheduled",
            "message": "All required pods have been successfully scheduled",
            "lastTransitionTime": self.context.now(),
        }
        space, plain = key_of(group)
        patch = {"status": {"conditions": [scheduled]}}
        self.views["podgroups"].assume(
            self.api.patch("podgroups", space, plain, patch, "status", kind="merge")
        )

    def _advance(self, pod_uid: str) -> None:
        binding = self._bindings[pod_uid]
        try:
            pause = next(binding.steps)
        except StopIteration:
            self._finish(binding.plan)
        except (Refused, StatusError) as error:
            self._give_up(binding.plan, error)
        else:
            if pause:
                self.queue.add_after(("bind", "", pod_uid), pause)
            else:
                self.queue.add_first(("bind", "", pod_uid))

    def _finish(self, plan: Plan) -> None:
        self._end(plan)
        shown = "/".join(key_of(plan.pod))
        self.event(plan.pod, "Normal", "Scheduled", f"Successfully assigned {shown} to {plan.node}")

    def _end(self, plan: Plan) -> None:
        del self._bindings[uid(plan.pod)]
        mine = [each for each, owner in self._promised.items() if owner == uid(plan.pod)]
        for identity in mine:
            del self._promised[identity]
        for each in plan.claims:
            self._wake(claim_topic(*key_of(each.seen)))

    def _give_up(self, plan: Plan, error: Refused | StatusError) -> None:
        self._end(plan)
        self._assumed.pop(uid(plan.pod), None)
        try:
            self._binder.undo(plan)
        except StatusError as other:
            error = other
        failures = self._errors.get(uid(plan.pod), 0)
        self._errors[uid(plan.pod)] = failures + 1
        backoff = self.context.timings.scheduler_backoff
        pause = backoff[min(failures, len(backoff) - 1)]
        self._fail(plan.pod, "SchedulerError", str(error))
        self.queue.add_after(("pod", *key_of(plan.pod)), pause)

    # Conditions

    def _fail(self, pod: Object, reason: str, message: str) -> None:
        self.event(pod, "Warning", "FailedScheduling", message)
        current = self.views["pods"].get(*key_of(pod)) or pod
        old = condition(current, "PodScheduled") or {}
        nominated = (current.get("status") or {}).get("nominatedNodeName")
        if not nominated and (old.get("reason"), old.get("message")) == (reason, message):
            return
        new = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": old.get("lastTransitionTime") or self.context.now(),
            "observedGeneration": current["metadata"].get("generation", 1),
        }
        status = {"conditions": [new], "nominatedNodeName": None}
        space, plain = key_of(pod)
        try:
            written = self.api.patch(
                "pods", space, plain, {"status": status}, "status", kind="strategic"
            )
        except StatusError as error:
            if error.reason != "NotFound":
                raise
        else:
            self.views["pods"].assume(written)


def _news(old: Object, new: Object) -> bool:
    """Whether a pod that could not be scheduled before changed in what matters."""
    if old["spec"] is new["spec"]:
        return False
    before, after = old.get("status") or {}, new.get("status") or {}
    return bool(
        before.get("resourceClaimStatuses") != after.get("resourceClaimStatuses")
        or old["spec"].get("schedulingGates") != new["spec"].get("schedulingGates")
        or uid(old) != uid(new)
    )


def _fitness(node: Object) -> tuple[object, ...]:
    spec = node.get("spec") or {}
    found = node["metadata"].get("labels") or {}
    return spec.get("unschedulable"), spec.get("taints"), found


def _reaches(claim: Object, node: Object) -> bool:
    allocation = allocation_of(claim)
    return allocation is None or node_matches(allocation.get("nodeSelector"), node)


def _only_group(claim: Object) -> bool:
    listed = reserved_for(claim)
    return len(listed) == 1 and is_group(listed[0])
