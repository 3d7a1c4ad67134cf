"""Carries out a preemption: the victims are marked and deleted."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kube_in_process.components.objects import (
    deleting,
    key_of,
    made_condition,
    uid,
)
from kube_in_process.components.pods import node_name, observed
from kube_in_process.components.rooms import priority
from kube_in_process.components.scheduler.preemption import BY_SCHEDULER, Candidate
from kube_in_process.errors import NotFound, StatusError
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.storage.requests import DeleteOptions

_ONCE_SINCE = (1, 35)
"""Before this version, a victim that is being deleted already is deleted again, with an Event."""


class Evictor:
    """The victims get a condition and are deleted with their own grace period."""

    def __init__(self, scheduler: Component[Any]) -> None:
        self._scheduler = scheduler

    def evict(self, pod: Object, candidate: Candidate) -> None:
        """Make room for ``pod``. A victim that is gone, or refuses, stays as it is."""
        again = self._scheduler.context.features.version < _ONCE_SINCE
        if not again and all(deleting(victim) for victim in candidate.victims):
            return
        self._withdraw(pod, candidate.node)
        for victim in candidate.victims:
            if again or not deleting(victim):
                with suppress(NotFound, StatusError):
                    self._delete(pod, victim, candidate.node)

    def _delete(self, pod: Object, victim: Object, node: str) -> None:
        name = pod["spec"].get("schedulerName", "default-scheduler")
        message = f"{name}: preempting to accommodate a higher priority pod"
        now = self._scheduler.context.now()
        new = made_condition("DisruptionTarget", "True", BY_SCHEDULER, message, now)
        status = {"status": {"conditions": [{**new, **observed(victim)}]}}
        api = self._scheduler.api
        api.patch("pods", *key_of(victim), status, "status", kind="strategic")
        api.delete("pods", *key_of(victim), DeleteOptions(uid(victim)))
        text = f"Preempted by pod {uid(pod)} on node {node}"
        self._scheduler.event(victim, "Normal", "Preempted", text)

    def _withdraw(self, pod: Object, node: str) -> None:
        """Take the node from pods of lower priority that were nominated to it."""
        for other in list(self._scheduler.views["pods"].items()):
            status = other.get("status") or {}
            nominated = status.get("nominatedNodeName") == node and not node_name(other)
            if nominated and uid(other) != uid(pod) and priority(other) < priority(pod):
                patch = {"status": {"nominatedNodeName": None}}
                with suppress(NotFound):
                    self._scheduler.api.patch(
                        "pods", *key_of(other), patch, "status", kind="strategic"
                    )
                    self._scheduler.queue.add(("pod", *key_of(other)))
