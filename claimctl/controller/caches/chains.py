"""Chains of controllers: from a pod up to its workload, also through other pods.

Owners do not change, except that garbage collection or a user orphans an object. So an owner that
was read once is remembered by the UID of the object that it owns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cachetools import LRUCache

from claimctl.controller.caches.informers import Caches
from claimctl.kube.informer import Informer
from claimctl.wire.meta import ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS, REPLICASETS

LONGEST = 12
"""The most owners of a chain that are looked at."""
REMEMBERED = 50_000


class Chains:
    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._owners: LRUCache[str, OwnerReference | None] = LRUCache(REMEMBERED)
        self._claims: LRUCache[str, frozenset[str]] = LRUCache(REMEMBERED)

    def remember(self, uid: str, owner: OwnerReference | None) -> None:
        """Note the controller of the object with this UID, by a live read; None if it has none."""
        self._owners[uid] = owner

    def note(self, pod: Pod) -> tuple[OwnerReference, ...]:
        """Note which claims the pod's owners use through it, and return the owners."""
        owners = self.above(pod)
        names = frozenset(
            claim.resource_claim_name
            for claim in pod.spec.resource_claims
            if claim.resource_claim_name
        )
        for owner in owners:
            known = self._claims.get(owner.uid, frozenset())
            if not names <= known:
                self._claims[owner.uid] = known | names
        return owners

    def claims_of(self, uid: str) -> frozenset[str]:
        """The claims that pods under the object named by resourceClaimName, as far as known."""
        return self._claims.get(uid, frozenset())

    def above(self, pod: Pod) -> tuple[OwnerReference, ...]:
        """The controllers of a pod as far as they are known, the nearest first."""
        return tuple(self._climb(pod.metadata))

    def unknown(self, pod: Pod) -> OwnerReference | None:
        """The last controller of the pod whose own controller is not known; None if all are."""
        known = self.above(pod)
        return known[-1] if known and not self._knows(known[-1], pod.metadata.namespace) else None

    def _climb(self, meta: ObjectMeta) -> Iterator[OwnerReference]:
        owner = meta.controller()
        for _ in range(LONGEST):
            if owner is None:
                return
            yield owner
            if not self._knows(owner, meta.namespace):
                return
            owner = self.owner_of(owner, meta.namespace)

    def _knows(self, reference: OwnerReference, namespace: str) -> bool:
        cached = self._cached(reference, namespace)
        return cached is not None or reference.uid in self._owners

    def owner_of(self, reference: OwnerReference, namespace: str) -> OwnerReference | None:
        """The controller of an object; None if it has none, or if it is not known."""
        cached = self._cached(reference, namespace)
        return cached.controller() if cached is not None else self._owners.get(reference.uid)

    def _cached(self, reference: OwnerReference, namespace: str) -> ObjectMeta | None:
        kind = (group_of(reference), reference.kind)
        informer: Informer[Any] | None
        if kind == (PODS.group, PODS.kind):
            informer = self._caches.pods
        elif kind == (REPLICASETS.group, REPLICASETS.kind):
            informer = self._caches.replica_sets
        else:
            informer = self._caches.workloads.get(kind)
        known = informer.get(reference.name, namespace) if informer is not None else None
        if known is None or known.metadata.uid != reference.uid:
            return None
        meta: ObjectMeta = known.metadata
        return meta


def group_of(reference: OwnerReference) -> str:
    """The API group of an owner; '' for the core group."""
    group, slash, _ = reference.api_version.partition("/")
    return group if slash else ""
