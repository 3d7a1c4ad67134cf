"""The assessment of one claim: all facts of a decision in one structure, each computed once."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from claimctl.reservation.assessment.retention import RetentionDecision
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_pod
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.reserved_for.consistency import ListPlan
from claimctl.wire.claims import Reference, ResourceClaim


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
    """The facts about a claim. ``decide``, statuses and ``claimctl explain`` read them."""

    snapshot: Snapshot
    phase: Phase
    retentions: tuple[RetentionDecision, ...] = ()
    held: bool = False
    """Whether any reservation holds the claim."""
    own: frozenset[str] = frozenset()
    """UIDs of the listed references that are claimctl's own, or PodGroups of its workloads."""
    groups: frozenset[str] = frozenset()
    """The UIDs in ``own`` that are PodGroups."""
    reason: Reason | None = None
    """Why the claim is released; None if a reservation holds it or none releases it."""
    releasing: Reason | None = None
    """The same, but None if the release is left to KCM or to a PodGroup."""
    steps_aside: Reason | None = None
    """Why claimctl removes all holds although the claim is held; None if they stay."""
    plan: ListPlan | None = None
    """The list that the claim should have; None if the claim is not allocated."""
    blockers: tuple[Blocker, ...] = ()
    """The blockers of the release, from the caches."""
    on_record: bool = False
    """Whether a reservation's status records the release of this claim (by its UID)."""
    finalizer_left: bool = False
    """Whether a claim whose deallocation is on record still has the scheduler's finalizer."""

    @property
    def claim(self) -> ResourceClaim:
        """The claim. It exists in every phase but ``ABSENT``."""
        assert self.snapshot.claim is not None
        return self.snapshot.claim

    @property
    def lists_bound_pods(self) -> bool:
        """Whether the list has a bound pod.

        Only KCM removes the entry of a bound pod. The scheduler may remove the entry of a pod that
        is not bound (Unreserve); no component deallocates the claim after that.
        """
        bound = self.snapshot.consumers.bound
        return any(is_pod(entry) and entry.uid in bound for entry in self.snapshot.references)

    @property
    def left_to_pods(self) -> bool:
        """Whether KCM will remove the last pod of the list, and thereby deallocate.

        KCM up to 1.33 never looks at a claim again whose last pod ends while KCM does not run, or
        while another client's entry is in the list. So claimctl leaves no claim to it.
        """
        return self.lists_bound_pods and self.snapshot.rules.kcm_looks_at_claims

    @property
    def live_pod_entries(self) -> list[Reference]:
        """The entries of pods that use the claim, or may start to use it."""
        alive = self.snapshot.consumers.alive
        return [entry for entry in self.snapshot.references if is_pod(entry) and entry.uid in alive]

    @property
    def kcm_time_left(self) -> float:
        """Seconds that KCM still has to remove the dead pods of the list."""
        ages, limit = self.snapshot.memory.dead_age, self.snapshot.rules.dead_reference_seconds
        return limit - min(ages.get(entry.uid, 0.0) for entry in self.snapshot.references)
