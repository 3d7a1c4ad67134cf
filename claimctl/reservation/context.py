"""A claim that exists, with what its reservations ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from claimctl.reservation.pod_groups.membership import own_groups
from claimctl.reservation.pods import Consumers
from claimctl.reservation.reasons import Reason
from claimctl.reservation.reserved_for.ownership import uids_written_by
from claimctl.reservation.reserved_for.references import (
    is_pod,
    is_pod_group,
    is_tombstone,
    is_workload,
    same_name,
)
from claimctl.reservation.retention import Action, RetentionDecision, decide_retention
from claimctl.reservation.snapshot import Snapshot
from claimctl.wire.claims import Reference, ResourceClaim


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """What all parts of a decision look at; made once per decision."""

    snapshot: Snapshot
    claim: ResourceClaim
    consumers: Consumers
    retentions: tuple[RetentionDecision, ...]
    own: frozenset[str]
    """UIDs of the references in the list that are claimctl's, or of its workloads' groups."""

    @classmethod
    def of(cls, snapshot: Snapshot, claim: ResourceClaim) -> ClaimContext:
        consumers = snapshot.consumers()
        retentions = tuple(
            decide_retention(snapshot, held, consumers) for held in snapshot.reservations
        )
        if any(retention.action is Action.HOLD for retention in retentions):
            retentions = tuple(_stays(retention) for retention in retentions)
        own = _own(claim, retentions) | own_groups(snapshot)
        return cls(snapshot, claim, consumers, retentions, own)

    @property
    def release_reason(self) -> Reason | None:
        """Why the claim is let go; None while somebody holds it or nobody ever did.

        Where pods wait in vain for one that everybody lets go, that is why, whoever is first.
        """
        if any(retention.action is Action.HOLD for retention in self.retentions):
            return None
        letting_go = [
            retention for retention in self.retentions if retention.action is Action.RELEASE
        ]
        given_up = [retention.yield_reason for retention in letting_go if retention.yield_reason]
        return next(iter((*given_up, *(retention.reason for retention in letting_go))), None)

    @property
    def fights(self) -> bool:
        """Whether somebody else keeps undoing what claimctl writes."""
        return self.snapshot.memory.repeated_writes >= self.snapshot.rules.fight_limit

    @property
    def on_record(self) -> bool:
        """Whether a reservation's status says that this very claim is being released."""
        return any(
            progress is not None and progress.claim_uid == self.claim.metadata.uid
            for progress in (
                retention.held.reservation.status.release for retention in self.retentions
            )
        )

    def listed(self, reference: Reference) -> bool:
        return any(listed.uid == reference.uid for listed in self.snapshot.references)

    def is_ours(self, reference: Reference) -> bool:
        """Whether nobody but claimctl takes the reference out of the list."""
        return is_tombstone(reference) or reference.uid in self.own

    @property
    def left_to_pods(self) -> bool:
        """Whether KCM will take the last pod out of the list, and deallocate by that.

        A bound pod's entry goes no other way. Of one that is not bound the scheduler may take it
        out (Unreserve), and nobody deallocates what is left.
        """
        return any(
            is_pod(ref) and ref.uid in self.consumers.bound for ref in self.snapshot.references
        )

    def live_pod_entries(self) -> list[Reference]:
        """Listed pods that use the claim, or are about to."""
        alive = self.consumers.bound.keys() | self.consumers.pending.keys()
        return [ref for ref in self.snapshot.references if is_pod(ref) and ref.uid in alive]


def _stays(retention: RetentionDecision) -> RetentionDecision:
    """While another reservation holds the claim, its devices are not given up for this one."""
    if retention.reason is Reason.REALLOCATED:
        return replace(retention, action=Action.HOLD, reason=Reason.HELD)
    return retention


def _own(claim: ResourceClaim, retentions: Iterable[RetentionDecision]) -> frozenset[str]:
    uids = set(uids_written_by(claim))
    created_for = claim.spec.reserved_for
    for retention in retentions:
        recorded = retention.held.reservation.status.reserved_for
        uids |= {reference.uid for reference in (retention.reference, recorded) if reference}
        if created_for and retention.reference and same_name(created_for, retention.reference):
            uids.add(created_for.uid)
    listed = claim.status.reserved_for
    return frozenset(
        ref.uid for ref in listed if is_workload(ref) and not is_pod_group(ref) and ref.uid in uids
    )
