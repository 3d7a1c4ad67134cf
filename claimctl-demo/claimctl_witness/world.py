"""The state of the server, computed from its revisions alone.

This module uses neither claimctl's caches nor its decisions, so it can contradict them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kube_in_process.storage.store import Revision

from claimctl.wire.base import decode
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation

K = TypeVar("K")
T = TypeVar("T")
Key = tuple[str, str]
"""Namespace and name."""

TERMINAL = frozenset({"Succeeded", "Failed"})


class World:
    """Pods, claims and reservations at revision ``number``.

    Listeners are called with each revision in order.
    """

    def __init__(self) -> None:
        self.number = 0
        self.changed_at = 0
        """The last revision of a pod, a claim or a ClaimReservation."""
        self.pods: dict[str, dict[str, Pod]] = {}
        """Pods by namespace, then by name."""
        self.claims: dict[Key, ResourceClaim] = {}
        self.reservations: dict[Key, ClaimReservation] = {}
        self._listeners: list[Callable[[Revision, World], None]] = []

    def listen(self, listener: Callable[[Revision, World], None]) -> None:
        """Call ``listener`` with each revision from now on, after the revision is applied."""
        self._listeners.append(listener)

    def read(self, revisions: Iterable[Revision]) -> None:
        for revision in revisions:
            self.apply(revision)

    def apply(self, revision: Revision) -> None:
        """Apply one revision; skip revisions that were applied already."""
        if revision.number <= self.number:
            return
        self.number = revision.number
        key = (revision.namespace, revision.name)
        match (revision.group, revision.plural):
            case ("", "pods"):
                pods = self.pods.setdefault(revision.namespace, {})
                _put(pods, revision.name, as_pod(revision))
            case ("resource.k8s.io", "resourceclaims"):
                _put(self.claims, key, as_claim(revision))
            case ("claimctl.io", "claimreservations"):
                _put(self.reservations, key, _as(revision, ClaimReservation))
            case _:
                self._tell(revision)
                return
        self.changed_at = revision.number
        self._tell(revision)

    def _tell(self, revision: Revision) -> None:
        for listener in self._listeners:
            listener(revision, self)

    def pods_in(self, namespace: str) -> list[Pod]:
        return list(self.pods.get(namespace, {}).values())

    def reservations_of(self, claim: Key) -> list[ClaimReservation]:
        return [
            one
            for (namespace, _), one in self.reservations.items()
            if (namespace, one.spec.resource_claim_name) == claim
        ]

    def users_of(self, claim: Key) -> list[Pod]:
        """Pods that name the claim, done or not."""
        namespace, name = claim
        return [pod for pod in self.pods_in(namespace) if name in claims_of(pod)]


def as_pod(revision: Revision) -> Pod | None:
    """The pod after this revision; None if the revision deleted it."""
    return _as(revision, Pod)


def as_claim(revision: Revision) -> ResourceClaim | None:
    return _as(revision, ResourceClaim)


def _as(revision: Revision, type_: type[T]) -> T | None:
    return None if revision.type == "DELETED" else decode(revision.data, type_)


def _put(table: dict[K, T], key: K, value: T | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def claims_of(pod: Pod) -> set[str]:
    """The names of the claims that a pod uses: named, generated, or for extended resources."""
    named = {claim.resource_claim_name for claim in pod.spec.resource_claims}
    generated = {status.resource_claim_name for status in pod.status.resource_claim_statuses}
    extended = pod.status.extended_resource_claim_status
    names = named | generated | {extended.resource_claim_name if extended else None}
    return {name for name in names if name}


def runs(pod: Pod) -> bool:
    """Whether a container of the pod may be running, and so may use a device."""
    statuses = (
        *pod.status.container_statuses,
        *pod.status.init_container_statuses,
        *pod.status.ephemeral_container_statuses,
    )
    return pod.status.phase == "Running" or any(status.state.running for status in statuses)


def is_bound_consumer(pod: Pod) -> bool:
    """Whether the pod has a node and may still use its devices."""
    if not pod.spec.node_name:
        return False
    return pod.status.phase not in TERMINAL or runs(pod) or left_behind(pod)


def left_behind(pod: Pod) -> bool:
    """Whether PodGC set the terminal phase, for a lost node, and containers may still be running.

    PodGC does not know whether the containers have stopped. Only containers that the kubelet
    reported as terminated have stopped.
    """
    swept = any(each.reason == "DeletionByPodGC" for each in pod.status.conditions)
    statuses = pod.status.container_statuses
    ended = bool(statuses) and all(each.state.terminated for each in statuses)
    return swept and not ended
