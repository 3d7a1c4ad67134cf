"""Compute the desired list of a claim from claim, pods and holds. Entries keep their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.references import (
    LIMIT,
    groups_in,
    is_pod,
    is_tombstone,
    is_workload,
)
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.reserved_for.listing_ahead import NOTHING_GIVEN_UP, GivenUp, pods_to_list
from claimctl.wire.claims import Reference

MOMENT = 1.0
"""Seconds in which more pods may go, whose entries then leave the list in the same write."""


@dataclass(frozen=True, slots=True)
class DesiredHolds:
    """The workload references to keep, to add and to remove, by UID."""

    keep: dict[str, Reference] = field(default_factory=dict)
    """The holds that should be in the list."""
    drop: frozenset[str] = frozenset()
    """UIDs to remove: released holds of claimctl, or holds for incarnations that are gone."""
    own: frozenset[str] = frozenset()
    """UIDs that are claimctl's own. An entry that is neither own nor kept stays and is reported."""
    pod_owners: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By UID of a hold: the UIDs of the controllers whose pods may be listed ahead beside it."""
    given_up: GivenUp = NOTHING_GIVEN_UP
    """The entries listed ahead that go."""
    late_hold_leaves: bool = False
    """Whether a late hold leaves. In the same write, all entries leave that are not those of living
    pods: tombstones, and pods that are gone or done."""


@dataclass(frozen=True, slots=True)
class ListPlan:
    """The desired list, the entries to confirm first, and the entries to report."""

    reserved_for: tuple[Reference, ...]
    confirm: tuple[Reference, ...] = ()
    unknown: tuple[Reference, ...] = ()
    full: bool = False
    """Whether the list has no room for an entry that should be added."""
    may_be_empty: bool = False
    """Whether to write the list even if it is empty, since a late hold leaves. Otherwise an empty
    list is left to the component that deallocates."""
    look_again: float | None = None
    """Seconds after which the list may have to change even if nothing else does."""


class _Draft:
    """Builds the desired list and collects what to confirm and to report."""

    def __init__(self, snapshot: Snapshot, holds: DesiredHolds) -> None:
        self.snapshot, self.pods, self.holds = snapshot, snapshot.consumers, holds
        self.entries: dict[str, Reference] = {}
        self.confirm: list[Reference] = []
        self.unknown: list[Reference] = []
        self.waits: list[float] = []
        self.held = self._has_holder()
        self.folds = snapshot.shared and self.held and not snapshot.frozen
        """Whether the workload's entry stands for all its pods (KEP-5194: reservedForAnyPod)."""
        needs = bool(self.pods.finished) and not holds.late_hold_leaves
        self.tombstones = self.pods.tombstones if needs else {}

    def _has_holder(self) -> bool:
        """Whether the claim stays allocated whatever kube-controller-manager (KCM) removes: the
        list has a hold, this write can add one, or the list has a finished pod's tombstone."""
        snapshot, finished = self.snapshot, self.pods.finished
        listed = snapshot.listed_uids
        if listed & self.holds.keep.keys():
            return True
        if not snapshot.shared and any(
            is_tombstone(entry) and entry.uid in finished for entry in snapshot.non_pods
        ):
            return True
        if not self.holds.keep or snapshot.frozen or not _may_add(snapshot):
            return False
        folds = snapshot.shared and snapshot.non_pods != snapshot.references
        return len(listed) < LIMIT or folds

    def take(self, reference: Reference) -> None:
        """Take over an entry of the present list, changed, or leave it out."""
        entry: Reference | None = reference
        if is_pod(reference):
            entry = self._pod(reference)
        elif is_tombstone(reference):
            entry = self._tombstone(reference)
        elif reference.uid in self.holds.drop:
            entry = None
        elif self.held and reference in self.snapshot.gone_groups:
            entry = self._absent(reference)
        elif reference.uid not in self.holds.keep and reference.uid not in self.holds.own:
            self.unknown.append(reference)
        if entry is not None:
            self.entries[entry.uid] = entry

    def _pod(self, reference: Reference) -> Reference | None:
        """The new entry of a listed pod: the same, a tombstone, or None to remove it."""
        uid, pods = reference.uid, self.pods
        if uid in pods.bound or uid in pods.pending:
            return None if self.folds or uid in self.holds.given_up.uids else reference
        if self.holds.late_hold_leaves:
            ended = pods.finished.keys() | pods.dropped.keys() | self.snapshot.memory.done_pods
            return None if uid in ended else self._unless_gone(reference)
        if not self.held:
            return reference
        if uid in pods.finished and self.folds:
            return None
        if uid in self.tombstones:
            # if the API accepts no additions, the pod's present entry stays
            return self.tombstones[uid] if _may_add(self.snapshot) else reference
        if uid in pods.finished or uid in pods.dropped:
            return None if self._overdue(reference) else reference
        return self._absent(reference)

    def _absent(self, reference: Reference) -> Reference | None:
        return self._unless_gone(reference) if self._overdue(reference) else reference

    def _overdue(self, reference: Reference) -> bool:
        """Whether the entry of a pod or group that is gone or done leaves the list now.

        KCM gets some time to remove it. Where KCM removes none, claimctl waits for a moment, in
        which more may go, and removes all in one write; but at once if the places are needed.
        """
        rules, ages = self.snapshot.rules, self.snapshot.memory.dead_age
        if rules.kcm_cleans_mixed_lists:
            left = rules.dead_reference_seconds - ages.get(reference.uid, 0.0)
        elif reference.uid not in ages:
            # an unreadable pod may be this one; its next event brings the claim back
            return False
        elif len(self.snapshot.listed_uids | self.pods.pending.keys()) >= LIMIT:
            left = 0.0
        else:
            left = MOMENT - max(ages.values())
        if left > 0:
            self.waits.append(left)
        return left <= 0

    def _tombstone(self, reference: Reference) -> Reference | None:
        """The new entry for a tombstone. A tombstone stays as long as the finished pod's object.

        If the cache shows the pod running, the cache counts as late until the settle time has
        passed. Then the pod gets its own entry again.
        """
        uid = reference.uid
        if self.holds.late_hold_leaves:
            return None
        if uid in self.pods.finished:
            return reference
        if (pod := self.pods.bound.get(uid)) is None:
            return self._unless_gone(reference)
        left = self.snapshot.rules.settle_seconds - self.snapshot.memory.version_age
        if left > 0:
            self.waits.append(left)
            return reference
        return self._pod(pod.reference)

    def _unless_gone(self, reference: Reference) -> Reference | None:
        evidence = self.snapshot.evidence
        if reference.uid in evidence.gone_pods:
            return None
        if reference.uid not in evidence.present_pods:
            self.confirm.append(reference)
        return reference

    def additions(self) -> Iterator[Reference]:
        """The entries that should be in the list, holds first."""
        if not self.snapshot.frozen:
            yield from self.holds.keep.values()
        if self.snapshot.shared:
            if self.snapshot.frozen and not any(map(is_workload, self.entries.values())):
                yield from (pod.reference for pod in self.pods.bound.values())
        elif self.held:
            for uid, entry in self.tombstones.items():
                if self.pods.groups.get(uid) not in self.snapshot.listed_groups:
                    yield entry
        if not self.snapshot.frozen or self.snapshot.shared:
            return
        # a kubelet refuses these pods when a plan has taken their PodGroup out of the list: the
        # bound ones, and those that a scheduler may bind because the group is still listed
        pods, given_up = self.pods, self.holds.given_up.uids
        listed = groups_in(self.snapshot.non_pods)
        due = {
            uid: pod.reference
            for uid, name in pods.groups.items()
            if (pod := pods.bound.get(uid) or (pods.pending.get(uid) if name in listed else None))
            and uid not in given_up
        }
        # the plan refuses a claim with more pods, and leaves its list as it is
        if not listed or len(self.entries.keys() | due.keys()) <= LIMIT:
            yield from due.values()


def consistent_list(snapshot: Snapshot, holds: DesiredHolds) -> ListPlan:
    """The desired list of an allocated claim. The API forbids additions to a deleted claim."""
    draft = _Draft(snapshot, holds)
    for reference in snapshot.references:
        draft.take(reference)
    missing = [ref for ref in draft.additions() if ref.uid not in draft.entries]
    if not _may_add(snapshot):
        missing = []
    room = max(LIMIT - len(draft.entries), 0)
    draft.entries |= {reference.uid: reference for reference in missing[:room]}
    if snapshot.consumers.pending:
        # only beside the hold of the pod's own workload
        beside = (owners for uid, owners in holds.pod_owners.items() if uid in draft.entries)
        ahead = pods_to_list(snapshot, frozenset().union(*beside), draft.entries)
        draft.entries |= {reference.uid: reference for reference in ahead}
    if holds.given_up.after is not None:
        draft.waits.append(holds.given_up.after)
    return ListPlan(
        reserved_for=tuple(draft.entries.values()),
        confirm=tuple(draft.confirm),
        unknown=tuple(draft.unknown),
        full=len(missing) > room,
        may_be_empty=holds.late_hold_leaves,
        look_again=min(draft.waits, default=None),
    )


def is_left_by_kcm(snapshot: Snapshot, write: WriteList) -> bool:
    """Whether the write removes dead pods that KCM has not removed in time."""
    rules, kept = snapshot.rules, {entry.uid for entry in write.reserved_for}
    ages = snapshot.memory.dead_age
    return rules.kcm_cleans_mixed_lists and any(
        ages.get(entry.uid, 0.0) >= rules.dead_reference_seconds
        for entry in snapshot.references
        if entry.uid not in kept and is_pod(entry)
    )


def _may_add(snapshot: Snapshot) -> bool:
    """Whether the API accepts new entries: the claim is allocated and not being deleted."""
    return snapshot.allocated and not snapshot.deleting
