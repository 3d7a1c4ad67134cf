"""Take claimctl's entries out of claims that no ClaimReservation names, beside running pods.

The ClaimReservation of such a hold is gone: its CRD was deleted, or its finalizer was removed by
hand. ``without_hold`` makes the decision about a withdrawn ClaimReservation (see
``reservation.decide``) as if it still existed. The command makes only writes that leave the claim
allocated; ``claimctl.commands.orphans`` frees the claims that no pod uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from claimctl.commands.orphans.judge import own_holds, unproven_holds
from claimctl.commands.orphans.model import NOT_READ, OwnerState, ScannedClaim
from claimctl.downgrade.expansion import listed_ahead
from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.memory import Memory, Openings
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.references import KINDS, is_pod, is_pod_group, is_tombstone
from claimctl.reservation.facts.snapshot import Evidence, Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.reservations import (
    FINALIZER,
    ClaimReservation,
    ClaimReservationSpec,
    ClaimReservationStatus,
    WorkloadRef,
)


def without_hold(
    scanned: ScannedClaim, groups: Iterable[PodGroup], rules: Rules, closed_age: float = inf
) -> WriteList | None:
    """The write that takes claimctl's holds out of a claim which pods or others keep allocated.

    The pods that claimctl listed ahead leave first. None if the claim has no such hold, or if the
    hold has to stay: until the binding time of these pods is over, or until its pods have ended.

    Args:
        closed_age: for how many seconds this process has seen no pod listed ahead in the list; inf
            if there was none.
    """
    own = own_holds(scanned.claim) - {hold.uid for hold in unproven_holds(scanned)}
    holds = [entry for entry in scanned.claim.status.reserved_for if entry.uid in own]
    states = {scanned.answers.get(hold.uid, NOT_READ).state for hold in holds}
    # the annotation of a workload may still ask for one
    wanted = states & {OwnerState.RESERVING, OwnerState.UNKNOWN}
    if scanned.reserved or scanned.live.unreadable or not holds or wanted:
        return None
    held = tuple(_withdrawn_reservation(hold, scanned) for hold in holds)
    meta = scanned.claim.metadata
    here = tuple(group for group in groups if group.metadata.namespace == meta.namespace)
    write = decide(
        Snapshot(
            now=scanned.now,
            namespace=meta.namespace,
            name=meta.name,
            claim=scanned.claim,
            reservations=held,
            pods=scanned.live.pods,
            groups=here,
            claims=scanned.others,
            binding_conditions=True,
            rules=rules,
            evidence=_evidence(scanned, here),
            memory=Memory(openings=Openings(watched_age=closed_age)),
        )
    ).write
    if not isinstance(write, WriteList) or write.deallocate or write.fence:
        return None
    left = {entry.uid for entry in write.reserved_for}
    ahead = listed_ahead(scanned.claim, Consumers.of(scanned.live.pods).pending)
    return write if left and not own | ahead <= left else None


def _withdrawn_reservation(hold: Reference, scanned: ScannedClaim) -> Held:
    """A withdrawn ClaimReservation for the hold, as all controllers have seen it by now."""
    meta = scanned.claim.metadata
    # a decision tells kinds apart by their resources, so any name of the kind will do
    kind = KINDS.get((hold.api_group, hold.resource), hold.resource)
    there = scanned.answers.get(hold.uid, NOT_READ).state is OwnerState.ALIVE
    return Held(
        ClaimReservation(
            metadata=ObjectMeta(
                name=hold.name,
                namespace=meta.namespace,
                uid=hold.uid,
                deletion_timestamp=scanned.now,
                finalizers=(FINALIZER,),
            ),
            spec=ClaimReservationSpec(
                resource_claim_name=meta.name,
                workload_ref=WorkloadRef(api_group=hold.api_group, kind=kind, name=hold.name),
            ),
            status=ClaimReservationStatus(reserved_for=hold, claim_uid=meta.uid),
        ),
        WorkloadState(
            WorkloadPhase.ACTIVE if there else WorkloadPhase.ABSENT,
            uid=hold.uid if there else "",
            confirmed=True,
        ),
        served_as=hold.resource,
    )


def _evidence(scanned: ScannedClaim, groups: Iterable[PodGroup]) -> Evidence:
    """The answers of the live reads that a decision can ask for."""
    there = scanned.live.uids | {group.metadata.uid for group in groups}
    entries = scanned.claim.status.reserved_for
    listed = {entry.uid for entry in entries if is_pod(entry) or is_tombstone(entry)}
    listed |= {entry.uid for entry in entries if is_pod_group(entry)}
    live = replace(scanned.live, claim_version=scanned.claim.metadata.resource_version)
    return Evidence(
        gone_pods=frozenset(listed - there), present_pods=frozenset(listed & there), live=live
    )


def without_old_tombstones(scanned: ScannedClaim) -> WriteList | None:
    """The write that removes tombstones whose pods are gone, beside the entry of a bound pod. That
    entry keeps the claim allocated: only kube-controller-manager removes it."""
    claim = scanned.claim
    if scanned.reserved or claim.status.allocation is None:
        return None
    entries, bound = claim.status.reserved_for, Consumers.of(scanned.live.pods).bound
    kept = tuple(
        entry for entry in entries if not is_tombstone(entry) or entry.uid in scanned.live.uids
    )
    if kept == entries or not any(is_pod(entry) and entry.uid in bound for entry in kept):
        return None
    return WriteList(claim.metadata.resource_version, kept)
