"""The facts of a decision about one PodGroup, and what follows from them: create it, guard it by a
finalizer, or delete it.

claimctl does not change PodGroups of other writers. Schedulers and kubelets match groups by name,
kube-controller-manager (KCM) by UID. So claimctl creates a group again only if no claim lists a
group of that name, and no scheduler's cache shows the earlier one any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.users.withdrawal import withdraws_beside_group
from claimctl.wire.meta import OwnerReference
from claimctl.wire.podgroups import MAX_CLAIMS, PodGroup
from claimctl.wire.pods import PodResourceClaim, PodTemplateSpec
from claimctl.wire.reservations import FINALIZER, NO_SIGNS_SECONDS


@dataclass(frozen=True, slots=True)
class Asking:
    """A workload whose pod template names the group, with its reserved claims."""

    owner: OwnerReference
    template: PodTemplateSpec
    claims: frozenset[str]
    """The claims that are reserved for the workload, or will be by its annotation."""
    planned: bool = False
    """Whether some of the reservations do not exist yet."""


@dataclass(frozen=True, slots=True)
class GroupCase:
    """The input of a decision about one group name. Durations are in seconds."""

    group: PodGroup | None
    asking: tuple[Asking, ...] = ()
    owner_ended: bool = False
    """Whether every workload that owns the group has ended."""
    reserved: bool = False
    """Whether a reservation names a claim of the group, and does not leave it to the group."""
    unneeded: bool = False
    """Whether no claim of the group needs it any more (see ``no_longer_needs``)."""
    in_use: bool = False
    """Whether the cache shows a pod of the group. If the group were deleted then, a scheduler with
    a late cache would list the group for that pod, KCM would remove the entry and deallocate, and
    the pod would be bound without devices."""
    in_use_live: bool | None = None
    """Whether a LIST that began after ``group`` was read shows such a pod; None before that."""
    listed: bool = False
    """Whether a claim lists a group of this name."""
    quiet: float = 0.0
    """Time since this process last saw the name in use, by an object or in a list."""
    settle_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class MakeGroup:
    owners: tuple[OwnerReference, ...]
    claims: tuple[PodResourceClaim, ...]


@dataclass(frozen=True, slots=True)
class GuardGroup:
    """Add claimctl's finalizer to the group, or remove it."""

    group: PodGroup
    present: bool


@dataclass(frozen=True, slots=True)
class DropGroup:
    group: PodGroup


GroupWrite = MakeGroup | GuardGroup | DropGroup


@dataclass(frozen=True, slots=True)
class GroupDecision:
    write: GroupWrite | None = None
    lists: bool = False
    """Whether to list the group's pods live and then decide again."""
    after: float | None = None
    """Seconds after which to decide again even if nothing changes."""


NOTHING = GroupDecision()


def decide_group(case: GroupCase) -> GroupDecision:
    """Decide about one group: at most one write. Groups of other writers are never changed."""
    group = case.group
    if group is None:
        # 1. Create it, once its name has rested for the settle time.
        claims, left = shared_claims(case.asking), case.settle_seconds - case.quiet
        if not claims or case.listed:
            return NOTHING
        if left > 0:
            return GroupDecision(after=left)
        owners = {asking.owner.uid: asking.owner for asking in case.asking if asking.claims}
        return GroupDecision(MakeGroup(tuple(owners.values()), claims))
    if not group.made_by_claimctl:
        return NOTHING
    has_finalizer = FINALIZER in group.metadata.finalizers
    if group.metadata.deleting:
        # 2. Let it go. Its pods are listed live before.
        over = not case.in_use and (case.unneeded or not case.reserved)
        if not has_finalizer or not over or case.in_use_live:
            return NOTHING
        if case.in_use_live is None:
            return GroupDecision(lists=True)
        return GroupDecision(GuardGroup(group, present=False))
    # 3. Guard it, delete it, or guard it no more.
    if case.reserved and not has_finalizer:
        return GroupDecision(GuardGroup(group, present=True))
    if case.owner_ended and case.unneeded and not case.in_use:
        return GroupDecision(DropGroup(group))
    over = has_finalizer and not case.reserved and case.unneeded
    return GroupDecision(GuardGroup(group, present=False)) if over else NOTHING


def shared_claims(asking: Iterable[Asking]) -> tuple[PodResourceClaim, ...]:
    """The reserved claims that the pod templates name, in order, at most ``MAX_CLAIMS``. If two
    templates give different claims the same name, the first one counts."""
    entries = {
        (entry.name, entry.resource_claim_name): PodResourceClaim(
            name=entry.name, resource_claim_name=entry.resource_claim_name
        )
        for workload in asking
        for entry in workload.template.spec.resource_claims
        if entry.resource_claim_name in workload.claims
    }
    by_name = {entry.name: entry for entry in reversed(entries.values())}
    kept = [entry for entry in entries.values() if by_name[entry.name] is entry]
    return tuple(kept[:MAX_CLAIMS])


def no_longer_needs(
    snapshot: Snapshot, group: PodGroup, blockers: Iterable[Blocker] | None
) -> bool:
    """Whether the claim does not need the group's object any more.

    One of these is true:

    - The claim is not allocated, or does not list the group.
    - Its reservations are withdrawn beside running pods of a group (see ``withdrawal``).
    - No reservation names the claim, and 300 s have passed since this process first knew of each
      ghost, and since a pod may have vanished unseen (``Memory.blind_age``). KCM deallocates when
      the group is gone.
    - The claim's release can go on only after the group is gone, because too many pods have
      finished. The hold in the list keeps the claim allocated meanwhile.

    Args:
        blockers: the blockers of the claim's release, without its finished pods; None if the claim
            is not released.
    """
    listed = group.metadata.uid in snapshot.listed_uids
    if not snapshot.allocated or not listed or withdraws_beside_group(snapshot):
        return True
    if not snapshot.reservations:
        blind, ages = snapshot.memory.blind_age, [ghost.age for ghost in snapshot.ghosts]
        ages += [] if blind is None else [blind]
        return all(age >= NO_SIGNS_SECONDS for age in ages)
    recorded = [held.reservation.status.reserved_for for held in snapshot.reservations]
    held = any(hold and hold.uid in snapshot.listed_uids for hold in recorded)
    return held and blockers is not None and not tuple(blockers) and snapshot.too_many_finished
