"""Chains of controllers: from a pod up to its workload, also through other pods.

Owners do not change, except that garbage collection or a user orphans an object. So an owner that
was read once is remembered. The key is the whole reference to the owned object, not its UID alone:
a user can write any UID into a pod, also the UID of an object in another namespace. Owners of
owners that no cache shows are read one by one (``Climber``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from claimctl.controller.caches.informers import Caches
from claimctl.controller.caches.shares import SharedMemory
from claimctl.controller.keys import WorkloadKey
from claimctl.kube.client import Client
from claimctl.kube.discovery import RENEW_SECONDS, Discovery
from claimctl.kube.errors import BadRequest, Forbidden, UnreadableObject
from claimctl.kube.informer import Informer
from claimctl.reservation.annotation import MOST_CLAIMS
from claimctl.reservation.facts.ordinals import sticky_entries
from claimctl.reservation.facts.pods import names_in
from claimctl.telemetry.face import LateLogger
from claimctl.wire.meta import ObjectHeader, ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS, REPLICASETS, read_as

log = LateLogger(__name__)

LONGEST = 12
"""The most owners of a chain that are looked at."""
REMEMBERED_OWNERS = 50_000
REMEMBERED_NAMES = 200_000
"""The most names of claims, of all owners together."""
PodKey = tuple[str, str]
"""Name and namespace."""


class OwnerKey(NamedTuple):
    """A reference to an owner from within a namespace, whether or not the object exists."""

    namespace: str
    group: str
    kind: str
    name: str
    uid: str


def owner_in(namespace: str, reference: OwnerReference) -> OwnerKey:
    return OwnerKey(namespace, group_of(reference), reference.kind, reference.name, reference.uid)


class Chains:
    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._owners: SharedMemory[OwnerKey, OwnerReference | None] = SharedMemory(
            REMEMBERED_OWNERS
        )
        self._claims: SharedMemory[OwnerKey, frozenset[str]] = SharedMemory(REMEMBERED_NAMES, len)

    def remember(self, owner: OwnerKey, above: OwnerReference | None) -> None:
        """Note the controller of an object, by a live read; None if it has none."""
        self._owners[owner] = above

    def note(self, pod: Pod, owners: Iterable[OwnerReference]) -> None:
        """Note which claims the owners use through the pod, apart from sticky ones, which belong to
        one ordinal. ``above`` gives the owners.

        The list of an owner ends one name beyond the limit of reservations, which shows that the
        limit is exceeded.
        """
        names = names_in(pod.spec.resource_claims)
        names -= {entry.claim for entry in sticky_entries(pod)}
        for owner in (owner_in(pod.metadata.namespace, reference) for reference in owners):
            known = self.claims_of(owner)
            if len(known) <= MOST_CLAIMS and not names <= known:
                self._claims[owner] = known.union(sorted(names - known)[: MOST_CLAIMS + 1])

    def claims_of(self, owner: OwnerKey) -> frozenset[str]:
        """The claims that pods under the object named by resourceClaimName, as far as known."""
        return self._claims.get(owner, frozenset())

    def shows(self, pod: PodKey) -> bool:
        """Whether the cache has a pod of that name."""
        return self._caches.pods.get(*pod) is not None

    def above(self, item: ObjectHeader) -> tuple[OwnerReference, ...]:
        """The controllers of a pod, or of another object, as far as they are known, the nearest
        first."""
        owners: list[OwnerReference] = []
        owner = item.metadata.controller()
        while owner is not None and len(owners) < LONGEST:
            owners.append(owner)
            owner = self.owner_of(owner, item.metadata.namespace)
        return tuple(owners)

    def unknown(self, pod: Pod) -> OwnerReference | None:
        """The last controller of the pod whose own controller is not known; None if all are."""
        known = self.above(pod)
        return known[-1] if known and not self.knows(known[-1], pod.metadata.namespace) else None

    def knows(self, reference: OwnerReference, namespace: str) -> bool:
        """Whether the controller of an object is known, or that it has none."""
        cached = self._cached(reference, namespace)
        return cached is not None or owner_in(namespace, reference) in self._owners

    def owner_of(self, reference: OwnerReference, namespace: str) -> OwnerReference | None:
        """The controller of an object; None if it has none, or if it is not known."""
        cached = self._cached(reference, namespace)
        if cached is not None:
            return cached.controller()
        return self._owners.get(owner_in(namespace, reference), None)

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


@dataclass(slots=True)
class _Question:
    reference: OwnerReference
    since: float
    pods: set[PodKey] = field(default_factory=set)


class Climber:
    """Reads one owner at a time, when a pod that names a claim has an owner that is not known."""

    def __init__(self, client: Client, chains: Chains) -> None:
        self.chains = chains
        self.resolved: Callable[[Iterable[PodKey]], None] = lambda pods: None
        """Called with the pods that asked, when the owner of an object has become known."""
        self._client = client
        self._discovery = Discovery(client)
        self._asked: dict[WorkloadKey, _Question] = {}

    def ask(self, key: WorkloadKey, reference: OwnerReference, pod: PodKey) -> None:
        """Note which incarnation to read when the key is reconciled, and for which pod.

        A pod under an earlier incarnation asks again when the later one has become known.
        """
        question = self._asked.get(key)
        if question is None:
            question = self._asked[key] = _Question(reference, self._client.clock.monotonic())
        elif question.reference != reference:
            question.reference, question.since = reference, self._client.clock.monotonic()
        question.pods.add(pod)

    async def read(self, key: WorkloadKey) -> float | None:
        """Read the owner of an object that was asked for. Raises KubeError.

        Returns:
            The number of seconds after which to read again: the object is not there as far as the
            server's discovery is known, and it is too early to ask for that again. None if there is
            nothing more to read.
        """
        question = self._asked.get(key)
        if question is None:
            return None
        if not any(map(self.chains.shows, question.pods)):
            del self._asked[key]
            return None
        reference, since = question.reference, question.since
        live = await read_object(self._client, self._discovery, reference, key.namespace)
        if live is None and self._discovery.since < since and not self._discovery.renew():
            return RENEW_SECONDS
        above = live.metadata.controller() if live is not None else None
        self.chains.remember(owner_in(key.namespace, reference), above)
        self.resolved(self._asked.pop(key).pods)
        return None


async def read_object(
    client: Client, discovery: Discovery, reference: OwnerReference, namespace: str
) -> ObjectHeader | None:
    """The object that a reference names, with its UID. None if there is none, or if it may not or
    cannot be read. Raises KubeError."""
    try:
        live = await _header(client, discovery, reference, namespace)
        # the server may serve another version by now, and answers 404 for the old one
        if live is None and discovery.renew():
            live = await _header(client, discovery, reference, namespace)
    except (BadRequest, Forbidden, UnreadableObject) as error:
        log.info("chain ends", kind=reference.kind, name=reference.name, error=str(error))
        return None
    return live if live is not None and live.metadata.uid == reference.uid else None


async def _header(
    client: Client, discovery: Discovery, reference: OwnerReference, namespace: str
) -> ObjectHeader | None:
    """The object that the reference names; None if the server has none."""
    resource = await discovery.workload((group_of(reference), reference.kind))
    if resource is None or not resource.namespaced:
        return None
    return await client.find(read_as(resource, ObjectHeader), reference.name, namespace)
