"""What a decision makes of one claim: one structure, each fact computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from claimctl.reservation.decision import Blocker, Decision, Need, Write
from claimctl.reservation.pods import Consumers
from claimctl.reservation.reasons import Reason, ReleaseStep
from claimctl.reservation.reserved_for.consistency import ListPlan
from claimctl.reservation.reserved_for.references import is_pod, is_tombstone
from claimctl.reservation.retention import Action, RetentionDecision
from claimctl.reservation.snapshot import Snapshot
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservationStatus


class Phase(StrEnum):
    """Which part of the protocol a claim is in."""

    ABSENT = "Absent"
    UNALLOCATED = "Unallocated"
    KEPT = "Kept"
    """Allocated, and not to be released: somebody holds it, or nobody ever did."""
    LEFT_TO_KCM = "LeftToKCM"
    """To be released, and its list names pods alone: KCM deallocates when it removes the last."""
    BLOCKED = "Blocked"
    """To be released, and something forbids that now."""
    RELEASING = "Releasing"


@dataclass(frozen=True, slots=True)
class Assessment:
    """Everything that a decision finds out about a claim, and at the end what it decides.

    ``assess`` computes it from a snapshot. The steps of ``decide`` return it with more in it;
    statuses, conditions and ``claimctl explain`` read it.
    """

    snapshot: Snapshot
    consumers: Consumers
    phase: Phase
    retentions: tuple[RetentionDecision, ...] = ()
    own: frozenset[str] = frozenset()
    """UIDs of the references in the list that are claimctl's, or of its workloads' groups."""
    groups: frozenset[str] = frozenset()
    """Those of them that are PodGroups."""
    reason: Reason | None = None
    """Why the claim is let go; None while somebody holds it or nobody ever did."""
    steps_aside: bool = False
    """Whether the holds leave a waiting pod no place, so that all of them give up theirs."""
    plan: ListPlan | None = None
    """The list as it should be; of an allocated claim."""
    blockers: tuple[Blocker, ...] = ()
    """What forbids the release now."""
    step: ReleaseStep | None = None
    """How far the release has come; None while more than time blocks it."""
    needs: tuple[Need, ...] = ()
    write: Write | None = None
    after: float | None = None
    """Seconds after which to look again although nothing changed."""
    statuses: Mapping[str, ClaimReservationStatus] = field(default_factory=dict)
    """The status each reservation should have, by name."""

    @property
    def claim(self) -> ResourceClaim:
        """The claim, in every phase but ``ABSENT``."""
        assert self.snapshot.claim is not None
        return self.snapshot.claim

    @property
    def releasing(self) -> Reason | None:
        """Why the claim is released, where that is under way and not left to KCM."""
        return self.reason if self.phase in (Phase.BLOCKED, Phase.RELEASING) else None

    @property
    def decided(self) -> bool:
        """Whether there is a write, or something to be read first."""
        return self.write is not None or bool(self.needs)

    @property
    def fights(self) -> bool:
        """Whether somebody else keeps undoing what claimctl writes."""
        return self.snapshot.memory.repeated_writes >= self.snapshot.rules.fight_limit

    @property
    def on_record(self) -> bool:
        """Whether a reservation's status says that this very claim is being released."""
        records = (each.held.reservation.status.release for each in self.retentions)
        uid = self.claim.metadata.uid
        return any(record is not None and record.claim_uid == uid for record in records)

    @property
    def held(self) -> bool:
        """Whether any reservation holds the claim."""
        return any(retention.action is Action.HOLD for retention in self.retentions)

    def sooner(self, seconds: float | None) -> Assessment:
        """The same, looked at again after so many seconds at the latest; None is never."""
        times = [time for time in (self.after, seconds) if time is not None]
        return replace(self, after=min(times, default=None))

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
        """Whether the claim lists this incarnation of something."""
        uid = reference.uid if reference is not None else None
        return any(listed.uid == uid for listed in self.snapshot.references)

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
