"""Taints of devices: NoExecute deletes the pods that have such a device allocated.

The rules are those of k8s.io/kubernetes/pkg/controller/devicetainteviction, on by default from
1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from claimctl.embedded.components.controllers.taints import (
    NO_EXECUTE,
    borne_for,
    delete_for_taint,
)
from claimctl.embedded.components.objects import deleting, namespace, uid
from claimctl.embedded.components.pods import (
    allocation_of,
    ended,
    node_name,
    pod_claims,
    reserved_for,
)
from claimctl.embedded.components.scheduler.devices import Identity, published
from claimctl.embedded.runtime.component import Component, Context
from claimctl.embedded.runtime.views import Change, Key
from claimctl.wire.base import Object

SINCE = (1, 36)
_CLOCK_STEP = 0.001
"""Seconds that are added to a wait, because clocks round."""


class DeviceTaintController(Component[Key]):
    name = "device-taint-eviction-controller"
    reporter = "device-taint-eviction"

    def __init__(self, context: Context) -> None:
        self._taints: dict[Identity, list[Object]] = {}
        """The NoExecute taints of published devices."""
        self._waiting: set[str] = set()
        """UIDs of the pods that will be deleted."""
        super().__init__(context)

    def watch(self) -> None:
        self.views["resourceslices"].subscribe(self._slice_changed)
        self.views["resourceclaims"].subscribe(self._claim_changed)
        self.views["pods"].subscribe(self._pod_changed)

    def _slice_changed(self, change: Change) -> None:
        before, self._taints = self._taints, dict(self._evicting())
        if before == self._taints or self.context.features.version < SINCE:
            return
        for claim in self.views["resourceclaims"].items():
            if any(each in before or each in self._taints for each in _devices(claim)):
                self._note(claim)

    def _evicting(self) -> Iterator[tuple[Identity, list[Object]]]:
        for device in published(self.views["resourceslices"].items()):
            taints = device.body.get("taints") or ()
            found = [each for each in taints if each["effect"] == NO_EXECUTE]
            if found:
                yield device.identity, found

    def _claim_changed(self, change: Change) -> None:
        if self._taints and change.new is not None:
            self._note(change.new)

    def _note(self, claim: Object) -> None:
        for each in reserved_for(claim):
            if each["resource"] == "pods":
                self.queue.add((namespace(claim), each["name"]))

    def _pod_changed(self, change: Change) -> None:
        if change.new is None:
            self._waiting.discard(uid(change.object))
        elif self._taints and node_name(change.new):
            self.queue.add(change.key)

    def sync(self, key: Key) -> None:
        pod = self.views["pods"].get(*key)
        if pod is None or not node_name(pod) or ended(pod) or deleting(pod):
            return
        moments = [each for claim in self._claims(pod) for each in self._moments(claim)]
        if not moments:
            if uid(pod) in self._waiting:
                self._waiting.discard(uid(pod))
                self.event(pod, "Normal", "DeviceTaintManagerEviction", "Cancelling deletion")
            return
        self._waiting.add(uid(pod))
        left = min(moments) - self.context.clock.now().timestamp()
        if left > 0:
            self.queue.add_after(key, left + _CLOCK_STEP)
        else:
            self._evict(pod)

    def _claims(self, pod: Object) -> Iterator[Object]:
        """The claims that list the pod."""
        for each in pod_claims(pod):
            claim = self.views["resourceclaims"].get(namespace(pod), each.claim or "")
            if claim is not None and any(to["uid"] == uid(pod) for to in reserved_for(claim)):
                yield claim

    def _moments(self, claim: Object) -> Iterator[float]:
        """When each taint of the claim's devices deletes the pods, in seconds since the epoch."""
        for result in _results(claim):
            identity = result["driver"], result["pool"], result["device"]
            for taint in self._taints.get(identity, ()):
                wait = borne_for([taint], result.get("tolerations") or ())
                if wait is not None:
                    yield _seconds(taint.get("timeAdded")) + wait

    def _evict(self, pod: Object) -> None:
        self.event(pod, "Normal", "DeviceTaintManagerEviction", "Marking for deletion")
        message = "Device Taint manager: deleting due to NoExecute taint"
        delete_for_taint(self, pod, "DeletionByDeviceTaintManager", message)


def _results(claim: Object) -> list[Object]:
    return ((allocation_of(claim) or {}).get("devices") or {}).get("results") or []


def _devices(claim: Object) -> Iterator[Identity]:
    for each in _results(claim):
        yield each["driver"], each["pool"], each["device"]


def _seconds(time: str | None) -> float:
    return datetime.fromisoformat(time).timestamp() if time else 0.0
