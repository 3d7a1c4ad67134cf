"""The list as it should be: from (claim, pods, workloads) to ``status.reservedFor``.

A pure function of the snapshot and of what the reservations ask for; the order of the entries
that stay is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from claimctl.reservation.decision import WriteList
from claimctl.reservation.pod_groups.membership import gone_groups, spoken_for
from claimctl.reservation.pods import Consumers
from claimctl.reservation.reserved_for.references import (
    LIMIT,
    is_pod,
    is_tombstone,
    is_workload,
    pod_reference,
    tombstone,
)
from claimctl.reservation.snapshot import Snapshot
from claimctl.wire.claims import Reference


@dataclass(frozen=True, slots=True)
class DesiredHolds:
    """What is to become of the workload references, by UID."""

    keep: dict[str, Reference] = field(default_factory=dict)
    """In the list or to be put there."""
    drop: frozenset[str] = frozenset()
    """Claimctl's own and released, or of an incarnation that is gone."""
    own: frozenset[str] = frozenset()
    """Known to be claimctl's; what is neither own nor kept is left and reported."""


@dataclass(frozen=True, slots=True)
class ListPlan:
    """The list as it should be, what has to be confirmed first, and what is to be reported."""

    reserved_for: tuple[Reference, ...]
    confirm: tuple[Reference, ...] = ()
    unknown: tuple[Reference, ...] = ()
    dangling: tuple[Reference, ...] = ()
    """Listed pods that are gone or done, or groups that are gone: their entries are to go."""
    full: bool = False
    """Something that should be listed finds no place."""
    look_again: float | None = None


class _Draft:
    """A list in the making; collects what has to be said about it."""

    def __init__(self, snapshot: Snapshot, consumers: Consumers, wishes: DesiredHolds) -> None:
        self.snapshot, self.pods, self.wishes = snapshot, consumers, wishes
        self.entries: dict[str, Reference] = {}
        self.confirm: list[Reference] = []
        self.unknown: list[Reference] = []
        self.dangling: list[Reference] = []
        self.waits: list[float] = []
        self.held = self._has_holder()
        self.gone_groups = gone_groups(snapshot)

    def _has_holder(self) -> bool:
        """Whether the claim stays allocated whatever KCM does: a workload reference stands in the
        list or can be put there in this write, or the tombstone of a finished pod is there."""
        listed = {reference.uid for reference in self.snapshot.references}
        if listed & self.wishes.keep.keys() or self._has_tombstone():
            return True
        if not self.wishes.keep or self.snapshot.frozen or not _may_add(self.snapshot):
            return False
        folds = self.snapshot.shared and any(map(is_pod, self.snapshot.references))
        return len(listed) < LIMIT or folds

    def _has_tombstone(self) -> bool:
        finished = self.pods.finished
        listed = self.snapshot.references
        return not self.snapshot.shared and any(
            is_tombstone(each) and each.uid in finished for each in listed
        )

    def take(self, reference: Reference) -> None:
        if is_pod(reference):
            self._take(self._pod(reference))
        elif is_tombstone(reference):
            self._take(self._tombstone(reference))
        elif reference.uid in self.wishes.drop:
            return
        elif reference in self.gone_groups and self.held:
            self._take(self._absent(reference))
        else:
            self._take(reference)
            if reference.uid not in self.wishes.keep and reference.uid not in self.wishes.own:
                self.unknown.append(reference)

    def _take(self, reference: Reference | None) -> None:
        if reference is not None:
            self.entries[reference.uid] = reference

    def _pod(self, reference: Reference) -> Reference | None:
        """The entry of a pod: kept, folded, turned into a tombstone, or removed."""
        uid, pods = reference.uid, self.pods
        if uid in pods.bound or uid in pods.pending:
            return None if self._folds() else reference
        if not self.held:
            return reference
        if uid in pods.finished:
            return None if self._folds() else self._buried(reference)
        if uid in pods.dropped:
            return None if self._overdue(reference) else reference
        return self._absent(reference)

    def _buried(self, reference: Reference) -> Reference:
        """A tombstone counts as a new entry although its UID is listed already."""
        return tombstone(reference) if _may_add(self.snapshot) else reference

    def _folds(self) -> bool:
        """KEP-5194: with reservedForAnyPod the workload reference stands for all its pods."""
        return self.snapshot.shared and self.held and not self.snapshot.frozen

    def _absent(self, reference: Reference) -> Reference | None:
        return self._unless_gone(reference) if self._overdue(reference) else reference

    def _overdue(self, reference: Reference) -> bool:
        """Whether KCM should have removed the entry by now; if it is going to, we leave it."""
        self.dangling.append(reference)
        rules = self.snapshot.rules
        if not rules.kcm_cleans_mixed_lists:
            return True
        left = rules.dead_reference_seconds - self.snapshot.memory.dead_age.get(reference.uid, 0.0)
        if left > 0:
            self.waits.append(left)
        return left <= 0

    def _tombstone(self, reference: Reference) -> Reference | None:
        """The entry of a finished pod stays as long as the pod's object.

        A cache that shows the pod alive is behind whoever wrote the tombstone, unless it goes on
        doing so.
        """
        uid = reference.uid
        if uid in self.pods.finished:
            return reference
        if (pod := self.pods.bound.get(uid)) is None:
            return self._unless_gone(reference)
        left = self.snapshot.rules.settle_seconds - self.snapshot.memory.version_age
        if left > 0:
            self.waits.append(left)
            return reference
        return self._pod(pod_reference(pod.metadata))

    def _unless_gone(self, reference: Reference) -> Reference | None:
        evidence = self.snapshot.evidence
        if reference.uid in evidence.gone_pods:
            return None
        if reference.uid not in evidence.present_pods:
            self.confirm.append(reference)
        return reference

    def additions(self) -> Iterator[Reference]:
        """What should stand in the list and does not; the holds come first."""
        if not self.snapshot.frozen:
            yield from self.wishes.keep.values()
        if self.snapshot.shared:
            if self.snapshot.frozen and not any(map(is_workload, self.entries.values())):
                yield from (pod_reference(pod.metadata) for pod in self.pods.bound.values())
        elif self.held:
            for pod in self.pods.finished.values():
                if not spoken_for(self.snapshot, pod):
                    yield tombstone(pod.metadata)


def consistent_list(snapshot: Snapshot, consumers: Consumers, wishes: DesiredHolds) -> ListPlan:
    """The list an allocated claim should have. The API forbids additions while it is deleted."""
    draft = _Draft(snapshot, consumers, wishes)
    for reference in snapshot.references:
        draft.take(reference)
    missing = [ref for ref in draft.additions() if ref.uid not in draft.entries]
    if not _may_add(snapshot):
        missing = []
    room = max(LIMIT - len(draft.entries), 0)
    draft.entries |= {reference.uid: reference for reference in missing[:room]}
    return ListPlan(
        reserved_for=tuple(draft.entries.values()),
        confirm=tuple(draft.confirm),
        unknown=tuple(draft.unknown),
        dangling=tuple(draft.dangling),
        full=len(missing) > room,
        look_again=min(draft.waits, default=None),
    )


def left_by_kcm(snapshot: Snapshot, write: WriteList) -> bool:
    """Whether a write takes out dead pods that KCM has left for as long as it may take."""
    rules, kept = snapshot.rules, {each.uid for each in write.reserved_for}
    ages = snapshot.memory.dead_age
    return rules.kcm_cleans_mixed_lists and any(
        ages.get(each.uid, 0.0) >= rules.dead_reference_seconds
        for each in snapshot.references
        if each.uid not in kept and is_pod(each)
    )


def _may_add(snapshot: Snapshot) -> bool:
    """The API refuses new entries beside no allocation and once the claim is being deleted."""
    return (
        snapshot.claim is not None and snapshot.allocated and not snapshot.claim.metadata.deleting
    )
