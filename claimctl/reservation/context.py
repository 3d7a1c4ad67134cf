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
from claimctl.reservation.retention import Stand, Standing, standing
from claimctl.reservation.snapshot import Snapshot
from claimctl.wire.claims import Reference, ResourceClaim


@dataclass(frozen=True, slots=True)
class Case:
    """What all parts of a decision look at; made once per decision."""

    snapshot: Snapshot
    claim: ResourceClaim
    consumers: Consumers
    stands: tuple[Standing, ...]
    own: frozenset[str]
    """UIDs of the references in the list that are claimctl's, or of its workloads' groups."""

    @classmethod
    def of(cls, snapshot: Snapshot, claim: ResourceClaim) -> Case:
        consumers = snapshot.consumers()
        stands = tuple(standing(snapshot, held, consumers) for held in snapshot.reservations)
        if any(stand.stand is Stand.HOLD for stand in stands):
            stands = tuple(_stays(stand) for stand in stands)
        own = _own(claim, stands) | own_groups(snapshot)
        return cls(snapshot, claim, consumers, stands, own)

    @property
    def release_reason(self) -> Reason | None:
        """Why the claim is let go; None while somebody holds it or nobody ever did.

        Where pods wait in vain for one that everybody lets go, that is why, whoever is first.
        """
        if any(stand.stand is Stand.HOLD for stand in self.stands):
            return None
        letting_go = [stand for stand in self.stands if stand.stand is Stand.LET_GO]
        given_up = [stand.gives_up for stand in letting_go if stand.gives_up]
        return next(iter((*given_up, *(stand.reason for stand in letting_go))), None)

    @property
    def fights(self) -> bool:
        """Whether somebody else keeps undoing what claimctl writes."""
        return self.snapshot.memory.repeated_writes >= self.snapshot.rules.fight_limit

    @property
    def on_record(self) -> bool:
        """Whether a reservation's status says that this very claim is being released."""
        return any(
            progress is not None and progress.claim_uid == self.claim.metadata.uid
            for progress in (stand.held.reservation.status.release for stand in self.stands)
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


def _stays(stand: Standing) -> Standing:
    """While another reservation holds the claim, its devices are not given up for this one."""
    if stand.reason is Reason.REALLOCATED:
        return replace(stand, stand=Stand.HOLD, reason=Reason.HELD)
    return stand


def _own(claim: ResourceClaim, stands: Iterable[Standing]) -> frozenset[str]:
    uids = set(uids_written_by(claim))
    made_for = claim.spec.reserved_for
    for stand in stands:
        recorded = stand.held.reservation.status.reserved_for
        uids |= {reference.uid for reference in (stand.reference, recorded) if reference}
        if made_for and stand.reference and same_name(made_for, stand.reference):
            uids.add(made_for.uid)
    listed = claim.status.reserved_for
    return frozenset(
        ref.uid for ref in listed if is_workload(ref) and not is_pod_group(ref) and ref.uid in uids
    )
