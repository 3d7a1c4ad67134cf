"""The assessment of one claim: all facts of a decision in one structure, each computed once."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.decision import Blocker, Decision, Need, Write
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason, ReleaseStep
from claimctl.reservation.facts.references import is_pod, is_tombstone, listed_ahead
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.reserved_for.consistency import ListPlan
from claimctl.wire.claims import CLAIM_FINALIZER, Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservationStatus


class Phase(StrEnum):
    """The phase of a claim; it decides what ``decide`` does."""

    ABSENT = "Absent"
    UNALLOCATED = "Unallocated"
    KEPT = "Kept"
    """The claim is allocated and not released: a reservation holds it, or none asks for it."""
    LEFT_TO_KCM = "LeftToKCM"
    """The claim is released, and its list has only pods: kube-controller-manager (KCM) deallocates
    when it removes the last one."""
    LEFT_TO_GROUP = "LeftToGroup"
    """The reservations are withdrawn, and the hold has left the claim to a PodGroup."""
    BLOCKED = "Blocked"
    """The claim should be released, and there are blockers."""
    RELEASING = "Releasing"
    """The claim should be released, and the caches show no blocker."""


class Assessment(msgspec.Struct, frozen=True):
    """The facts about a claim and, at the end, the decision.

    ``assess`` computes the facts from a snapshot. The steps of ``decide`` return copies with more
    fields set. Statuses, conditions and ``claimctl explain`` read it.
    """

    snapshot: Snapshot
    consumers: Consumers
    phase: Phase
    retentions: tuple[RetentionDecision, ...] = ()
    own: frozenset[str] = frozenset()
    """UIDs of the listed references that are claimctl's own, or PodGroups of its workloads."""
    groups: frozenset[str] = frozenset()
    """The UIDs in ``own`` that are PodGroups."""
    reason: Reason | None = None
    """Why the claim is released; None if a reservation holds it or none releases it."""
    steps_aside: Reason | None = None
    """Why claimctl removes all holds although the claim is held; None if they stay."""
    plan: ListPlan | None = None
    """The list that the claim should have; None if the claim is not allocated."""
    blockers: tuple[Blocker, ...] = ()
    """The blockers of the release, from the caches or from a live LIST."""
    step: ReleaseStep | None = None
    """The step of the release to record; None while time alone does not end every blocker."""
    needs: tuple[Need, ...] = ()
    write: Write | None = None
    after: float | None = None
    """Seconds after which to decide again even if nothing changes."""
    statuses: Mapping[str, ClaimReservationStatus] = msgspec.field(default_factory=dict)
    """The status that each reservation should have, by name."""

    @property
    def claim(self) -> ResourceClaim:
        """The claim. It exists in every phase but ``ABSENT``."""
        assert self.snapshot.claim is not None
        return self.snapshot.claim

    @property
    def releasing(self) -> Reason | None:
        """Why the claim is released; None if it is not, or if the release is left to KCM."""
        return self.reason if self.phase in (Phase.BLOCKED, Phase.RELEASING) else None

    @property
    def decided(self) -> bool:
        """Whether there is a write, or a need to be answered first."""
        return self.write is not None or bool(self.needs)

    @property
    def fights(self) -> bool:
        """Whether another client keeps undoing claimctl's writes."""
        return self.snapshot.memory.repeated_writes >= self.snapshot.rules.fight_limit

    @property
    def on_record(self) -> bool:
        """Whether a reservation's status records the release of this claim (by its UID)."""
        records = (each.held.reservation.status.release for each in self.retentions)
        uid = self.claim.metadata.uid
        return any(record is not None and record.claim_uid == uid for record in records)

    @property
    def finalizer_left(self) -> bool:
        """Whether a claim whose deallocation is on record still has the scheduler's finalizer."""
        claim = self.snapshot.claim
        left = claim is not None and CLAIM_FINALIZER in claim.metadata.finalizers
        return left and not self.snapshot.allocated and self.on_record

    @property
    def held(self) -> bool:
        """Whether any reservation holds the claim."""
        return any(retention.action is Action.HOLD for retention in self.retentions)

    def sooner(self, seconds: float | None) -> Assessment:
        """The same, to be decided again after ``seconds`` at the latest; None changes nothing."""
        if seconds is None or (self.after is not None and self.after <= seconds):
            return self
        return replace(self, after=seconds)

    def decision(self) -> Decision:
        return Decision(
            needs=self.needs,
            write=self.write,
            after=self.after,
            releasing=self.releasing,
            blockers=self.blockers if self.releasing else (),
            statuses=self.statuses,
        )

    def listed(self, reference: Reference | None) -> bool:
        """Whether the claim lists the object of this UID."""
        return reference is not None and reference.uid in self.snapshot.listed_uids

    @property
    def ahead(self) -> frozenset[str]:
        """UIDs of the pending pods that claimctl has listed."""
        return listed_ahead(self.claim, self.consumers.pending)

    def is_ours(self, reference: Reference) -> bool:
        """Whether only claimctl removes the reference from the list."""
        return is_tombstone(reference) or reference.uid in self.own | self.ahead

    @property
    def left_to_pods(self) -> bool:
        """Whether KCM will remove the last pod of the list, and thereby deallocate.

        KCM up to 1.33 never looks at a claim again whose last pod ends while KCM does not run, or
        while another client's entry is in the list. So claimctl leaves no claim to it.
        """
        return self.lists_bound_pods and self.snapshot.rules.kcm_looks_at_claims

    @property
    def lists_bound_pods(self) -> bool:
        """Whether the list has a bound pod.

        Only KCM removes the entry of a bound pod. The scheduler may remove the entry of a pod that
        is not bound (Unreserve); no component deallocates the claim after that.
        """
        return any(
            is_pod(ref) and ref.uid in self.consumers.bound for ref in self.snapshot.references
        )

    def live_pod_entries(self) -> list[Reference]:
        """The entries of pods that use the claim, or may start to use it."""
        alive = self.consumers.bound.keys() | self.consumers.pending.keys()
        return [ref for ref in self.snapshot.references if is_pod(ref) and ref.uid in alive]
