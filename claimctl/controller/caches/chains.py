"""Chains of controllers: from a pod up to its workload, also through other pods.

Owners do not change, except that garbage collection or a user orphans an object. So an owner that
was read once is remembered by the UID of the object that it owns. Owners of owners that no cache
shows are read one by one (``Climber``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import structlog
from cachetools import LRUCache

from claimctl.controller.caches.informers import Caches
from claimctl.controller.keys import WorkloadKey
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Forbidden, UnreadableObject
from claimctl.kube.informer import Informer
from claimctl.reservation.facts.pods import names_in
from claimctl.wire.meta import ObjectHeader, ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS, REPLICASETS, read_as

log = structlog.get_logger(__name__)

LONGEST = 12
"""The most owners of a chain that are looked at."""
REMEMBERED = 50_000
PodKey = tuple[str, str]
"""Name and namespace."""


class Chains:
    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._owners: LRUCache[str, OwnerReference | None] = LRUCache(REMEMBERED)
        self._claims: LRUCache[str, frozenset[str]] = LRUCache(REMEMBERED)

    def remember(self, uid: str, owner: OwnerReference | None) -> None:
        """Note the controller of the object with this UID, by a live read; None if it has none."""
        self._owners[uid] = owner

    def note(self, pod: Pod, owners: Iterable[OwnerReference]) -> None:
        """Note which claims the owners use through the pod. ``above`` gives the owners."""
        names = names_in(pod.spec.resource_claims)
        for owner in owners:
            known = self._claims.get(owner.uid, frozenset())
            if not names <= known:
                self._claims[owner.uid] = known | names

    def claims_of(self, uid: str) -> frozenset[str]:
        """The claims that pods under the object named by resourceClaimName, as far as known."""
        return self._claims.get(uid, frozenset())

    def above(self, pod: Pod) -> tuple[OwnerReference, ...]:
        """The controllers of a pod as far as they are known, the nearest first."""
        owners: list[OwnerReference] = []
        owner = pod.metadata.controller()
        while owner is not None and len(owners) < LONGEST:
            owners.append(owner)
            owner = self.owner_of(owner, pod.metadata.namespace)
        return tuple(owners)

    def unknown(self, pod: Pod) -> OwnerReference | None:
        """The last controller of the pod whose own controller is not known; None if all are."""
        known = self.above(pod)
        return known[-1] if known and not self._knows(known[-1], pod.metadata.namespace) else None

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


class Climber:
    """Reads one owner at a time, when a pod that names a claim has an owner that is not known."""

    def __init__(self, client: Client, chains: Chains) -> None:
        self.chains = chains
        self.resolved: Callable[[Iterable[PodKey]], None] = lambda pods: None
        """Called with the pods that asked, when the owner of an object has become known."""
        self._client = client
        self._discovery = Discovery(client)
        self._asked: dict[WorkloadKey, tuple[OwnerReference, set[PodKey]]] = {}

    def ask(self, key: WorkloadKey, reference: OwnerReference, pod: PodKey) -> None:
        """Note which incarnation to read when the key is reconciled, and for which pod.

        A pod under an earlier incarnation asks again when the later one has become known.
        """
        _, pods = self._asked.get(key, (None, set[PodKey]()))
        self._asked[key] = (reference, {*pods, pod})

    async def read(self, key: WorkloadKey) -> bool:
        """Read the owner of an object that was asked for; False if it was not. Raises KubeError."""
        if key not in self._asked:
            return False
        reference, _ = self._asked[key]
        owner = await read_owner(self._client, self._discovery, reference, key.namespace)
        self.chains.remember(reference.uid, owner)
        _, pods = self._asked.pop(key)
        self.resolved(pods)
        return True


async def read_owner(
    client: Client, discovery: Discovery, reference: OwnerReference, namespace: str
) -> OwnerReference | None:
    """The controller of the object that the reference names. None if it has none, is gone, or may
    not be read. Raises KubeError."""
    try:
        live = await _header(client, discovery, reference, namespace)
        if live is None:
            # the server may serve another version by now, and answers 404 for the old one
            discovery.forget()
            live = await _header(client, discovery, reference, namespace)
    except (Forbidden, UnreadableObject) as error:
        log.info("chain ends", kind=reference.kind, name=reference.name, error=str(error))
        return None
    if live is None or live.metadata.uid != reference.uid:
        return None
    return live.metadata.controller()


async def _header(
    client: Client, discovery: Discovery, reference: OwnerReference, namespace: str
) -> ObjectHeader | None:
    """The object that the reference names; None if the server has none."""
    resource = await discovery.workload((group_of(reference), reference.kind))
    if resource is None or not resource.namespaced:
        return None
    return await client.find(read_as(resource, ObjectHeader), reference.name, namespace)
