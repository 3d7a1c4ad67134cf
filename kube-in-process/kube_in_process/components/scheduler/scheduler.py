"""The scheduler: finds a node and devices for each pod, writes its claims, and binds it.

It decides on a view that may lag (``Timings.scheduler_cache_lag``). A pod is bound before the next
one is planned, except in a conflict storm of shared claims, or while its devices or volumes are not
ready.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from kube_in_process.components.objects import (
    condition,
    deleting,
    key_of,
    made_condition,
    namespace,
    uid,
)
from kube_in_process.components.pods import (
    allocation_of,
    ended,
    group_key,
    group_name,
    node_name,
    observed,
    on_node,
)
from kube_in_process.components.requests import is_sized, pod_requests
from kube_in_process.components.rooms import priority
from kube_in_process.components.scheduler.binding import REPORTER, Binder, NotBound, Plan
from kube_in_process.components.scheduler.evicting import Evictor
from kube_in_process.components.scheduler.parking import (
    DEVICES,
    NODES,
    PODS,
    ROOM,
    VOLUMES,
    Parking,
    claim_topic,
    group_topic,
)
from kube_in_process.components.scheduler.planning import (
    Commitments,
    Planner,
    Unschedulable,
    Wait,
)
from kube_in_process.components.scheduler.post_filter import UNRESERVED, PostFilter
from kube_in_process.components.scheduler.preemption import NOT_HELPFUL, Preemption
from kube_in_process.components.scheduler.queue import SchedulingQueue, Task
from kube_in_process.components.scheduler.volumes import NotMounted, NoVolumes
from kube_in_process.errors import NotFound, StatusError
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.runtime.local import ConnectionLost
from kube_in_process.runtime.views import Change, Key


@dataclass
class _Binding:
    plan: Plan
    steps: Iterator[float] = field(repr=False)


class Scheduler(Component[Task]):
    name = "scheduler"
    manager = "kube-scheduler"
    reporter = REPORTER
    queue: SchedulingQueue

    def __init__(self, context: Context) -> None:
        self._parking = Parking()
        self._bindings: dict[str, _Binding] = {}
        self._commitments = Commitments()
        self._errors: dict[str, int] = {}
        super().__init__(context)

    def make_queue(self) -> SchedulingQueue:
        return SchedulingQueue(self.backoff(), self._priority)

    def _priority(self, key: Task) -> int:
        pod = self.views["pods"].get(*key[1:])
        return 0 if pod is None else priority(pod)

    def watch(self) -> None:
        timings = self.context.timings
        self.views = self.context.feed.views(timings.scheduler_cache_lag)
        pods = self.views["pods"]
        pods.index("node", on_node)
        pods.index("group", group_key)
        self._planner = Planner(self.context, self.views, self._commitments)
        self._post_filter = PostFilter(self.api, self.views, lambda: self.context.features)
        self._binder = Binder(self.context, self.api, self.views, self._written)
        self._evictor = Evictor(self)
        pods.subscribe(self._pod_changed)
        self.views["resourceclaims"].subscribe(self._claim_changed)
        self.views["nodes"].subscribe(self._node_changed)
        self.views["podgroups"].subscribe(lambda change: self._wake(group_topic(*change.key)))
        self.views["resourceslices"].subscribe(lambda _: self._wake(DEVICES))
        self.views["deviceclasses"].subscribe(lambda _: self._wake(DEVICES))
        for plural in ("persistentvolumeclaims", "persistentvolumes", "storageclasses"):
            self.views[plural].subscribe(lambda _: self._wake(VOLUMES))
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

    def resumed(self) -> None:
        self._bindings.clear()
        for commitments in (
            self._commitments.allocating,
            self._commitments.promised,
            self._commitments.assumed,
        ):
            commitments.clear()
        self._planner.rooms.reset()
        for pod in self.views["pods"].items():
            self.queue.leave(_planning(key_of(pod)))
        self.retry_waiting()

    def retry_waiting(self) -> None:
        """Plan all waiting pods again, because something other than an object has changed."""
        for pod in self.views["pods"].items():
            if self._to_schedule(pod):
                self.queue.add(_planning(key_of(pod)))

    # Changes of objects

    def _wake(self, topic: str) -> None:
        for key in self._parking.wake(topic):
            self.queue.add(_planning(key))

    def _pod_changed(self, change: Change) -> None:
        pod = change.object
        if group_name(pod):
            self._wake(group_topic(namespace(pod), group_name(pod)))
        self._room_changed(change)
        if change.new is None or node_name(pod) or ended(pod):
            self._forget(change)
        elif change.old is None or _is_relevant(change.old, pod):
            self._parking.leave(change.key)
            self.queue.add(_planning(change.key))

    def _room_changed(self, change: Change) -> None:
        """Wake the pods for which a pod may have made room, or that want or shun other pods."""
        before = change.old is not None and bool(node_name(change.old)) and not ended(change.old)
        after = change.new is not None and bool(node_name(change.new)) and not ended(change.new)
        if before and (not after or _shrank(change)):
            self._wake(ROOM)
        if before != after:
            self._wake(PODS)

    def _forget(self, change: Change) -> None:
        self._parking.leave(change.key)
        self.queue.leave(_planning(change.key))
        self._errors.pop(uid(change.object), None)
        self._commitments.assumed.pop(uid(change.object), None)

    def _claim_changed(self, change: Change) -> None:
        self._wake(claim_topic(*change.key))
        freed = change.old is not None and allocation_of(change.old) is not None
        if freed and (change.new is None or allocation_of(change.new) is None):
            self._wake(DEVICES)

    def _node_changed(self, change: Change) -> None:
        if (
            change.old is None
            or change.new is None
            or _scheduling_fields(change.old) != _scheduling_fields(change.new)
        ):
            self._wake(NODES)

    # One pod

    def _to_schedule(self, pod: Object) -> bool:
        wanted = not node_name(pod) and not deleting(pod) and not ended(pod)
        ours = pod["spec"].get("schedulerName", "default-scheduler") == "default-scheduler"
        return wanted and ours and uid(pod) not in self._commitments.assumed

    def _schedule(self, pod: Object) -> None:
        try:
            plan = self._planner.plan(pod)
        except Wait as wait:
            self._parking.park(key_of(pod), wait.topics)
        except NoVolumes as refusal:
            self.queue.renew(_planning(key_of(pod)))
            self._parking.park(key_of(pod), refusal.topics)
            self._refuse_group(pod)
            total = len(self.views["nodes"])
            # PostFilter finds nothing that a plugin had kept: no plugin had come to that
            why = f"0/{total} nodes are available: {refusal}. not found"
            self._fail(pod, "Unschedulable", why)
        except Unschedulable as refusal:
            self.queue.renew(_planning(key_of(pod)))
            # parked before PostFilter runs, so that the pod notices what PostFilter deallocates
            self._parking.park(key_of(pod), refusal.topics)
            after = self._post_filter.run(pod, refusal)
            self._refuse_group(pod)
            self._preempt(pod, refusal, after)
        else:
            self._begin(plan)

    def _preempt(self, pod: Object, refusal: Unschedulable, after: str) -> None:
        """Try preemption, and write why the pod cannot be scheduled."""
        total = len(self.views["nodes"])
        why = f"0/{total} nodes are available: {refusal}."
        if after == UNRESERVED:
            self._fail(pod, "Unschedulable", f"{why} {after}")
            return
        if refusal.search is None:
            helpless = f"0/{total} nodes are available: {total} {NOT_HELPFUL}."
            self._fail(pod, "Unschedulable", f"{why} {after}, preemption: {helpless}")
            return
        search = refusal.search
        outcome = Preemption(search.filters, search.refusals, self.views).run()
        if outcome.candidate is not None:
            self._fail(pod, "Unschedulable", why, nominated=outcome.candidate.node)
            self._evictor.evict(pod, outcome.candidate)
            return
        known = (pod.get("status") or {}).get("nominatedNodeName")
        message = f"{why} {after}, preemption: {outcome.message}"
        self._fail(pod, "Unschedulable", message, nominated=known if outcome.keeps else None)

    # Binding

    def _begin(self, plan: Plan) -> None:
        self._mark_group(plan)
        self._commitments.make(plan)
        self._planner.rooms.assume(plan.pod, plan.node)
        self._bindings[uid(plan.pod)] = _Binding(plan, self._binder.steps(plan))
        self.queue.add_first(("bind", "", uid(plan.pod)))

    def _mark_group(self, plan: Plan) -> None:
        group = self._planner.gate(plan.pod)
        if group is None or (condition(group, "PodGroupScheduled") or {}).get("status") == "True":
            return
        self._set_scheduled(group, "True", "Scheduled", "")

    def _refuse_group(self, pod: Object) -> None:
        """Write the condition of a group of which no pod has ever been scheduled."""
        group = self._planner.gate(pod)
        if group is not None and condition(group, "PodGroupScheduled") is None:
            self._set_scheduled(group, "False", "Unschedulable", "pod group is unschedulable")

    def _set_scheduled(self, group: Object, status: str, reason: str, message: str) -> None:
        new = made_condition("PodGroupScheduled", status, reason, message, self.context.now())
        space, plain = key_of(group)
        patch = {"status": {"conditions": [new]}}
        self.views["podgroups"].assume(
            self.api.patch("podgroups", space, plain, patch, "status", kind="merge")
        )

    def _advance(self, pod_uid: str) -> None:
        binding = self._bindings.get(pod_uid)
        if binding is None:
            return
        try:
            pause = next(binding.steps)
        except StopIteration:
            self._finish(binding.plan)
        except (NotBound, NotMounted, NoVolumes, StatusError, ConnectionLost) as error:
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
        self._written(plan)

    def _written(self, plan: Plan) -> None:
        """Pods that waited for the plan's claims see them as the cluster shows them."""
        self._commitments.keep(uid(plan.pod))
        for claim in plan.claims:
            self._wake(claim_topic(*key_of(claim.seen)))

    def _give_up(self, plan: Plan, error: Exception) -> None:
        self._end(plan)
        self._commitments.assumed.pop(uid(plan.pod), None)
        self._planner.rooms.forget(plan.pod)
        self._wake(ROOM)
        try:
            self._binder.undo(plan)
        except (StatusError, ConnectionLost) as other:
            error = other
        failures = self._errors.get(uid(plan.pod), 0)
        self._errors[uid(plan.pod)] = failures + 1
        backoff = self.context.timings.scheduler_backoff
        pause = backoff[min(failures, len(backoff) - 1)]
        self.queue.renew(_planning(key_of(plan.pod)))
        self.queue.add_after(_planning(key_of(plan.pod)), pause)
        self._fail(plan.pod, "SchedulerError", str(error))

    # Conditions

    def _fail(self, pod: Object, reason: str, message: str, nominated: str | None = None) -> None:
        self.event(pod, "Warning", "FailedScheduling", message)
        current = self.views["pods"].get(*key_of(pod)) or pod
        old = condition(current, "PodScheduled") or {}
        known = (current.get("status") or {}).get("nominatedNodeName")
        same = (old.get("reason"), old.get("message")) == (reason, message)
        if same and (known or None) == nominated:
            return
        since = old.get("lastTransitionTime") or self.context.now()
        new = made_condition("PodScheduled", "False", reason, message, since)
        new |= {"lastProbeTime": None, **observed(current)}
        status = {"conditions": [new], "nominatedNodeName": nominated}
        space, plain = key_of(pod)
        with suppress(NotFound):
            written = self.api.patch(
                "pods", space, plain, {"status": status}, "status", kind="strategic"
            )
            self.views["pods"].assume(written)


def _planning(pod: Key) -> Task:
    return ("pod", *pod)


def _is_relevant(old: Object, new: Object) -> bool:
    """Whether a change may make an unschedulable pod schedulable."""
    if old["spec"] is new["spec"]:
        return False
    before, after = old.get("status") or {}, new.get("status") or {}
    return bool(
        before.get("resourceClaimStatuses") != after.get("resourceClaimStatuses")
        or old["spec"].get("schedulingGates") != new["spec"].get("schedulingGates")
        or uid(old) != uid(new)
    )


def _shrank(change: Change) -> bool:
    """Whether a pod on a node requests less of something after a resize."""
    old, new = change.old, change.new
    if old is None or new is None or not is_sized(old):
        return False
    before, after = pod_requests(old), pod_requests(new)
    return any(after.get(name, 0) < number for name, number in before.items())


def _scheduling_fields(node: Object) -> tuple[object, ...]:
    spec = node.get("spec") or {}
    labels = node["metadata"].get("labels") or {}
    there = (node.get("status") or {}).get("allocatable")
    return spec.get("unschedulable"), spec.get("taints"), labels, there
