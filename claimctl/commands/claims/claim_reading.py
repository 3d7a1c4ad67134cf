"""One look at a claim and at everything around it that decides on it. Nothing is judged here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from claimctl.cli.kinds import KindReader
from claimctl.commands.claims.asking import AnnotatedObject, annotated_in
from claimctl.commands.claims.device_classes import CLAIMS_WITH_REQUESTS
from claimctl.commands.claims.places import Places, read_places
from claimctl.commands.claims.recorded import with_drivers
from claimctl.commands.orphans.model import ScannedClaim
from claimctl.kube.client import Client
from claimctl.live_objects import list_if_allowed, list_if_served
from claimctl.parallel import side_by_side
from claimctl.reservation.facts.pods import claim_names
from claimctl.reservation.facts.snapshot import LiveList, Snapshot
from claimctl.reservation.facts.unreadable import may_concern
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    PODS,
    REPLICASETS,
    RESOURCECLAIMS,
)
from claimctl.wire.unreadable import Unreadable


@dataclass(frozen=True, slots=True)
class ClaimReading:
    """What one look at a claim and its namespace shows, each resource listed once."""

    claim: ResourceClaim
    pods: tuple[Pod, ...]
    """Those that name the claim."""
    reservations: tuple[ClaimReservation, ...]
    """Those that name the claim."""
    uids: frozenset[str]
    """UIDs of all pods, and of what cannot be read."""
    unreadable: tuple[Unreadable, ...]
    """What cannot be read and may concern the claim."""
    annotated: tuple[AnnotatedObject, ...]
    """All annotated workloads."""
    claims: tuple[ResourceClaim, ...]
    """All claims; none if the user may not list them."""
    places: Places
    """Where pods can use devices."""

    def scanned(self, now: datetime) -> ScannedClaim:
        """The same as it is judged whether the claim is an orphan, before its owners are read."""
        pods = tuple(unread for unread in self.unreadable if unread.resource is PODS)
        live = LiveList("", self.pods, self.uids, unreadable=pods)
        reserved = bool(self.reservations or self.unreadable)
        return ScannedClaim(self.claim, live, now, reserved=reserved)


async def read_claim(client: Client, kinds: KindReader, namespace: str, name: str) -> ClaimReading:
    """Read the claim and what is around it, side by side. ``kinds`` learns of the ReplicaSets.

    Raises:
        NotFound: the claim does not exist.
        UnreadableObject: the claim cannot be read.
        KubeError: a request failed.
    """
    async with side_by_side() as group:
        reading = group.create_task(client.get(CLAIMS_WITH_REQUESTS, name, namespace))
        listing = group.create_task(client.list(PODS, namespace, partial=True))
        reserving = group.create_task(list_if_served(client, CLAIMRESERVATIONS, namespace))
        replicas = group.create_task(list_if_allowed(client, REPLICASETS, namespace))
        claims = group.create_task(list_if_allowed(client, RESOURCECLAIMS, namespace))
        places = group.create_task(read_places(client))
        annotating = group.create_task(annotated_in(client, kinds, namespace))
    claim, pods, sets = reading.result(), listing.result(), replicas.result()
    reservations = reserving.result()
    kinds.know(replica_set.metadata for replica_set in sets.items)
    unreadable = (*pods.unreadable, *reservations.unreadable, *sets.unreadable)
    return ClaimReading(
        claim,
        pods=tuple(pod for pod in pods.items if name in claim_names(pod)),
        reservations=tuple(
            made for made in reservations.items if made.spec.resource_claim_name == name
        ),
        uids=frozenset(
            (*(pod.metadata.uid for pod in pods.items), *(unread.uid for unread in unreadable))
        ),
        unreadable=tuple(it for it in unreadable if may_concern(it, namespace, name, claim)),
        annotated=annotating.result(),
        claims=claims.result().items,
        places=places.result(),
    )


def with_devices(snapshot: Snapshot, reading: ClaimReading) -> Snapshot:
    """Add nodes, ResourceSlices and the namespace's claims, if the claim has devices or pods.

    They decide how long a scheduler may take to bind a pod, whether a device evicts its pods, and
    whether pods can still reach it.
    """
    places = reading.places
    if not reading.pods and reading.claim.status.allocation is None:
        return snapshot
    slices = places.slices or ()
    devices = (device for piece in slices for device in piece.spec.devices or ())
    conditions = any(device.has_binding_conditions for device in devices)
    snapshot = replace(
        snapshot,
        nodes=places.nodes or {},
        claims={claim.metadata.name: claim for claim in reading.claims},
        slices=slices,
        binding_conditions=conditions or not places.complete,
    )
    if places.slices is None:
        return snapshot
    return replace(snapshot, ghosts=tuple(with_drivers(snapshot)))
