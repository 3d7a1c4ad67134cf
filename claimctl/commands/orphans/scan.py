"""Read claims, pods and ClaimReservations live, as input for ``judge``.

The order of the reads matters. Claims are read first. A LIST of pods that begins later has every
pod that these claims can name, so a listed pod that is missing from it is gone. ClaimReservations
are read after both, as close to a write as possible, and then the owners that references name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import filterfalse
from typing import Any, NamedTuple

from msgspec import structs

from claimctl.cli.kinds import KindReader
from claimctl.commands.orphans.adoption import is_adoption
from claimctl.commands.orphans.judge import references_to_read
from claimctl.commands.orphans.model import Answer, OwnerState, ScannedClaim
from claimctl.controller.caches.slim import slim_claim
from claimctl.controller.keys import ClaimKey
from claimctl.kube.client import Client
from claimctl.kube.codec import Listing
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import KubeError
from claimctl.live_objects import UnknownKind, list_if_served, read_header
from claimctl.reservation.annotation import Annotated, plan
from claimctl.reservation.facts.pods import awaited_templates, claim_names
from claimctl.reservation.facts.slim_pods import slim_pod
from claimctl.reservation.facts.snapshot import LiveList
from claimctl.reservation.facts.unreadable import may_concern
from claimctl.reservation.facts.workloads import judged
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RESERVE_ANNOTATION, ClaimReservation, WorkloadRef
from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, RESOURCECLAIMS, WORKLOADS, Resource
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable
from claimctl.wire.workloads import CustomWorkload, Workload


@dataclass(frozen=True, slots=True)
class ClaimScan:
    """The result of one scan."""

    claims: tuple[ScannedClaim, ...]
    reservations: tuple[ClaimReservation, ...]
    pods: frozenset[str]
    """UIDs of all pods, whether they name a claim or not."""
    adopted: Mapping[ClaimKey, tuple[ClaimReservation, ...]]
    """The ClaimReservations that adopt claims, also of claims that are gone."""
    unreadable: tuple[Unreadable, ...] = ()
    """Claims, pods and reservations that cannot be read. ``claims`` lacks these claims."""
    users: Mapping[ClaimKey, tuple[Pod, ...]] = field(default_factory=dict)
    """The pods by the claims that they name, also by those that do not exist."""
    awaiting: tuple[Pod, ...] = ()
    """The pods for which a claim from a template is still to be made."""


async def scan_claims(
    client: Client,
    clock: Clock,
    namespace: str = "",
    *,
    believing: bool = False,
    claims: Resource[Any] = RESOURCECLAIMS,
) -> ClaimScan:
    """Scan the claims of a namespace ('' means all).

    Args:
        believing: see ``ScannedClaim``.
        claims: the resource as which they are listed. That of ``claimctl doctor`` also decodes
            their requests.
    """
    listed = await client.collect(claims, slim_claim, namespace)
    pods = await client.collect(PODS, _ScannedPod.of, namespace)
    reservations = await list_if_served(client, CLAIMRESERVATIONS, namespace)
    users = _users_by_claim(pods)
    uids = frozenset((*(it.uid for it in pods.items), *(it.uid for it in pods.unreadable)))
    adopted = _by_claim(filter(is_adoption, reservations.items))
    reserved = _by_claim(filterfalse(is_adoption, reservations.items)).keys()
    reader, now = OwnerReader(client), clock.now()
    scanned_claims = []
    for claim in listed.items:
        key, version = ClaimKey(*claim.metadata.key), claim.metadata.resource_version
        unread = _unread_pods(claim, pods.unreadable)
        scanned = ScannedClaim(
            claim,
            LiveList(version, users.get(key, ()), uids, unreadable=unread),
            now,
            reserved=key in reserved or _may_be_reserved(key, reservations.unreadable),
            adoptions=adopted.get(key, ()),
            believing=believing,
        )
        scanned_claims.append(await reader.read_owners(scanned))
    return ClaimScan(
        claims=tuple(scanned_claims),
        reservations=reservations.items,
        pods=uids,
        adopted=adopted,
        unreadable=(*listed.unreadable, *pods.unreadable, *reservations.unreadable),
        users=users,
        awaiting=tuple(it.awaiting for it in pods.items if it.awaiting is not None),
    )


def _users_by_claim(pods: Listing[_ScannedPod]) -> dict[ClaimKey, tuple[Pod, ...]]:
    """The pods by the claims that they name; a pod may name several."""
    users: dict[ClaimKey, list[Pod]] = {}
    for pod in (it.user for it in pods.items if it.user is not None):
        for name in sorted(claim_names(pod)):
            users.setdefault(ClaimKey(pod.metadata.namespace, name), []).append(pod)
    return {key: tuple(of_claim) for key, of_claim in users.items()}


def _unread_pods(claim: ResourceClaim, unreadable: Iterable[Unreadable]) -> tuple[Unreadable, ...]:
    """The unreadable pods that may name the claim, and those of which not even the UID is known:
    the claim may list them."""
    namespace, name = claim.metadata.key
    return tuple(
        pod
        for pod in unreadable
        if may_concern(pod, namespace, name, claim) or (not pod.uid and pod.may_be_in(namespace))
    )


def _by_claim(
    reservations: Iterable[ClaimReservation],
) -> dict[ClaimKey, tuple[ClaimReservation, ...]]:
    by_claim: dict[ClaimKey, tuple[ClaimReservation, ...]] = {}
    for reservation in reservations:
        key = ClaimKey(reservation.metadata.namespace, reservation.spec.resource_claim_name)
        by_claim[key] = (*by_claim.get(key, ()), reservation)
    return by_claim


def _may_be_reserved(key: ClaimKey, unreadable: Iterable[Unreadable]) -> bool:
    """Whether an unreadable ClaimReservation may name the claim."""
    return any(may_concern(it, key.namespace, key.name, None) for it in unreadable)


class _ScannedPod(NamedTuple):
    """What is kept of a pod: its UID, and more of one that names a claim or waits for one."""

    uid: str
    user: Pod | None
    awaiting: Pod | None

    @classmethod
    def of(cls, pod: Pod) -> _ScannedPod:
        return cls(pod.metadata.uid, _slim(pod), pod if awaited_templates(pod) else None)


def _slim(pod: Pod) -> Pod | None:
    """What decisions need of a pod that names a claim, and the taints that it tolerates: these say
    whether the claim's node takes the next pods."""
    slim = slim_pod(pod)
    if slim is None:
        return None
    return structs.replace(slim, spec=structs.replace(slim.spec, tolerations=pod.spec.tolerations))


class OwnerReader:
    """Reads the objects that the lists of possible orphans name."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._kinds = KindReader(client)

    async def read_owners(self, scanned: ScannedClaim) -> ScannedClaim:
        """The scanned claim with the answers to its questions."""
        answers = {
            reference.uid: await self._read(scanned.claim, reference)
            for reference in references_to_read(scanned)
        }
        return replace(scanned, answers=answers)

    async def _read(self, claim: ResourceClaim, reference: Reference) -> Answer:
        place = claim.metadata.namespace
        try:
            header = await read_header(
                self._client,
                self._discovery,
                reference.api_group,
                reference.resource,
                reference.name,
                place,
            )
            if header is None:
                return Answer(OwnerState.GONE)
            if header.metadata.uid != reference.uid:
                return Answer(OwnerState.REPLACED)
            reserving = await self._would_reserve(claim, reference, header)
        except UnknownKind:
            return Answer(OwnerState.UNKNOWN_KIND)
        except KubeError as error:
            return Answer(OwnerState.UNKNOWN, str(error))
        return Answer(OwnerState.RESERVING if reserving else OwnerState.ALIVE)

    async def _would_reserve(
        self, claim: ResourceClaim, reference: Reference, header: ObjectHeader
    ) -> bool:
        """Whether the controller would make a ClaimReservation for the claim by the annotation of
        the workload that the reference names."""
        if header.metadata.annotation(RESERVE_ANNOTATION) is None:
            return False
        kind = await self._kinds.of_resource(reference.api_group, reference.resource)
        state = await self._kinds.state(kind) if kind is not None else None
        if kind is None or state is None or state.resource is None:
            return False
        place = claim.metadata.namespace
        resource: Resource[Any] = WORKLOADS.get(kind, state.resource)
        workload: Workload = await self._client.get(resource, reference.name, place)
        by_pods = None
        if isinstance(workload, CustomWorkload):
            # the hold shows that a pod of the workload has named the claim
            workload, by_pods = judged(workload, state.rule), frozenset((claim.metadata.name,))
        ref = WorkloadRef(api_group=kind[0], kind=kind[1], name=reference.name)
        planned = plan(Annotated(ref, resource.api_version, workload, by_pods=by_pods))
        return any(it.spec.resource_claim_name == claim.metadata.name for it in planned.create)
