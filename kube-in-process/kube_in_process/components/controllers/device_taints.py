"""Taints of devices: NoExecute deletes the bound pods that have such a device allocated.

The rules are those of k8s.io/kubernetes/pkg/controller/devicetainteviction, on by default from
1.36: a pod goes that a claim lists, whatever its phase, or whose PodGroup it lists. Taints come
from ResourceSlices and, behind a gate of their own, from DeviceTaintRules, whose status stays
empty here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kube_in_process.components.controllers.taints import (
    NO_EXECUTE,
    borne_for,
    delete_for_taint,
)
from kube_in_process.components.objects import deleting, key_of, name, namespace, uid
from kube_in_process.components.pods import (
    allocation_of,
    group_key,
    group_name,
    is_group,
    is_pod,
    node_name,
    pod_claims,
    reserved_for,
)
from kube_in_process.components.scheduler.devices import Identity, published
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.runtime.views import Change, Key

_CLOCK_STEP = 0.001
"""Seconds that are added to a wait, because clocks round."""


class DeviceTaintController(Component[Key]):
    name = "device-taint-eviction-controller"

    def __init__(self, context: Context) -> None:
        self._taints: dict[Identity, list[Object]] = {}
        """The NoExecute taints of published devices."""
        self._rules: dict[str, Object] = {}
        """By name: the specs of the DeviceTaintRules with the effect NoExecute."""
        self._waiting: set[str] = set()
        """UIDs of the pods that will be deleted."""
        self._earliest: dict[str, float] = {}
        """By UID: when new pods may be deleted, in seconds since the epoch."""
        super().__init__(context)

    def watch(self) -> None:
        self.views["pods"].index("group", group_key)
        self.views["resourceslices"].subscribe(self._slice_changed)
        self.views["devicetaintrules"].subscribe(self._rule_changed)
        self.views["resourceclaims"].subscribe(self._claim_changed)
        self.views["pods"].subscribe(self._pod_changed)

    def _slice_changed(self, change: Change) -> None:
        before, self._taints = self._taints, dict(self._evicting())
        if before == self._taints or not self.context.features.device_taints:
            return
        for claim in self.views["resourceclaims"].items():
            if any(device in before or device in self._taints for device in _devices(claim)):
                self._note(claim)

    def _evicting(self) -> Iterator[tuple[Identity, list[Object]]]:
        for device in published(self.views["resourceslices"].items()):
            taints = device.body.get("taints") or ()
            evicting = [taint for taint in taints if taint["effect"] == NO_EXECUTE]
            if evicting:
                yield device.identity, evicting

    def _rule_changed(self, change: Change) -> None:
        rule = change.new
        self._rules.pop(name(change.object), None)
        if rule is not None and rule["spec"]["taint"]["effect"] == NO_EXECUTE:
            self._rules[name(rule)] = rule["spec"]
        if self.context.features.taint_rules:
            for claim in self.views["resourceclaims"].items():
                self._note(claim)

    def _is_idle(self) -> bool:
        return not self._taints and not self._rules

    def _claim_changed(self, change: Change) -> None:
        if not self._is_idle() and change.new is not None:
            self._note(change.new)

    def _note(self, claim: Object) -> None:
        for reference in reserved_for(claim):
            if is_pod(reference):
                self.queue.add((namespace(claim), reference["name"]))
            elif is_group(reference) and self.context.features.kcm_pod_groups:
                group = f"{namespace(claim)}/{reference['name']}"
                for pod in self.views["pods"].by("group", group):
                    self.queue.add(key_of(pod))

    def _pod_changed(self, change: Change) -> None:
        """Only a new node matters, or claims that were generated for the pod."""
        if change.new is None:
            self._waiting.discard(uid(change.object))
            self._earliest.pop(uid(change.object), None)
        elif not self._is_idle() and _place(change.old) != _place(change.new):
            clock, pause = self.context.clock, self.context.timings.device_eviction
            self._earliest[uid(change.new)] = clock.now().timestamp() + pause
            self.queue.add(change.key)

    def sync(self, key: Key) -> None:
        pod = self.views["pods"].get(*key)
        if pod is None or not node_name(pod) or deleting(pod):
            return
        moments = [moment for claim in self._claims(pod) for moment in self._moments(claim)]
        if not moments:
            if uid(pod) in self._waiting:
                self._waiting.discard(uid(pod))
                self.event(pod, "Normal", "DeviceTaintManagerEviction", "Cancelling deletion")
            return
        self._waiting.add(uid(pod))
        moment = max(min(moments), self._earliest.get(uid(pod), 0.0))
        left = moment - self.context.clock.now().timestamp()
        if left > 0:
            self.queue.add_after(key, left + _CLOCK_STEP)
        else:
            self._evict(pod)

    def _claims(self, pod: Object) -> Iterator[Object]:
        """The claims that list the pod, or its PodGroup by name."""
        shared = group_name(pod) if self.context.features.kcm_pod_groups else ""
        group = self.views["podgroups"].get(namespace(pod), shared) if shared else None
        for pod_claim in pod_claims(pod, group):
            claim = self.views["resourceclaims"].get(namespace(pod), pod_claim.claim or "")
            if claim is not None and any(
                to["uid"] == uid(pod) or (shared and is_group(to) and to["name"] == shared)
                for to in reserved_for(claim)
            ):
                yield claim

    def _moments(self, claim: Object) -> Iterator[float]:
        """When each taint of the claim's devices deletes the pods, in seconds since the epoch.

        Only tolerations that name the effect NoExecute count. (To the scheduler, those without an
        effect do, too.)
        """
        for result in _results(claim):
            tolerations = [
                toleration
                for toleration in result.get("tolerations") or ()
                if toleration.get("effect") == NO_EXECUTE
            ]
            for taint in self._taints_of(result):
                wait = borne_for([taint], tolerations)
                if wait is not None:
                    yield _seconds(taint.get("timeAdded")) + wait

    def _taints_of(self, result: Object) -> Iterator[Object]:
        yield from self._taints.get(_identity(result), ())
        for rule in self._rules.values():
            selector = rule.get("deviceSelector")
            # a rule without a selector selects nothing, and an empty selector everything
            if selector is not None and all(result[key] == selector[key] for key in selector):
                yield rule["taint"]

    def _evict(self, pod: Object) -> None:
        self.event(pod, "Normal", "DeviceTaintManagerEviction", "Marking for deletion")
        message = "Device Taint manager: deleting due to NoExecute taint"
        delete_for_taint(self, pod, "DeletionByDeviceTaintManager", message)


def _results(claim: Object) -> list[Object]:
    return ((allocation_of(claim) or {}).get("devices") or {}).get("results") or []


def _identity(result: Object) -> Identity:
    return result["driver"], result["pool"], result["device"]


def _devices(claim: Object) -> Iterator[Identity]:
    return map(_identity, _results(claim))


def _place(pod: Object | None) -> tuple[object, ...] | None:
    if pod is None:
        return None
    return uid(pod), node_name(pod), (pod.get("status") or {}).get("resourceClaimStatuses")


def _seconds(time: str | None) -> float:
    return datetime.fromisoformat(time).timestamp() if time else 0.0
