"""What to do about one PodGroup: make it, guard it, let it go, or leave it to whoever made it.

Schedulers and kubelets match groups by name, KCM by UID. So a name is used again only when no
claim lists a group of that name and every scheduler has forgotten the earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from claimctl.reservation.decision import Blocker
from claimctl.reservation.pod_groups.membership import (
    MAX_CLAIMS,
    made_by_claimctl,
    too_many_finished,
)
from claimctl.reservation.snapshot import Snapshot
from claimctl.wire.meta import OwnerReference
from claimctl.wire.podgroups import PodGroup, PodGroupResourceClaim
from claimctl.wire.pods import PodTemplateSpec
from claimctl.wire.reservations import FINALIZER, ClaimReservationSpec


@dataclass(frozen=True, slots=True)
class Asking:
    """A workload whose pod template names the group, with what is reserved for it."""

    owner: OwnerReference
    template: PodTemplateSpec
    claims: frozenset[str]
    """Reserved for the workload; empty when nothing is."""


@dataclass(frozen=True, slots=True)
class GroupCase:
    """All that a decision about one group's name is made from. Durations in seconds."""

    group: PodGroup | None
    asking: tuple[Asking, ...] = ()
    owner_ended: bool = False
    """Every workload that owns the group has ended."""
    guarded: bool = False
    """Some reservation still has to do with a claim of the group."""
    claims_let_go: bool = False
    """No claim of the group needs it any more (see ``lets_go``)."""
    in_use: bool = False
    """The cache shows a pod of the group. A scheduler that still sees the group when it is gone
    would list it for that pod; KCM would take it out again and deallocate, and the pod be bound."""
    in_use_live: bool | None = None
    """Whether a LIST that began after ``group`` was read shows such a pod; None before that."""
    listed: bool = False
    """Some claim lists a group of this name."""
    quiet: float = 0.0
    """Since this process last saw the name in use, by an object or in a list."""
    settle_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class MakeGroup:
    owners: tuple[OwnerReference, ...]
    claims: tuple[PodGroupResourceClaim, ...]


@dataclass(frozen=True, slots=True)
class GuardGroup:
    """Put claimctl's finalizer on the group, or take it off."""

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
    """The group's pods have to be listed live; then decide again."""
    after: float | None = None
    """Seconds after which to look again although nothing changed."""


NOTHING = GroupDecision()


def decide_group(context: GroupCase) -> GroupDecision:
    """At most one write; groups that others made are used and never touched."""
    if context.group is None:
        return _missing(context)
    if not made_by_claimctl(context.group):
        return NOTHING
    guards = FINALIZER in context.group.metadata.finalizers
    if context.group.metadata.deleting:
        over = not context.in_use and (context.claims_let_go or not context.guarded)
        return _let_go(context.group, context.in_use_live) if guards and over else NOTHING
    if context.guarded and not guards:
        return _write(GuardGroup(context.group, present=True))
    if context.owner_ended and context.claims_let_go and not context.in_use:
        return _write(DropGroup(context.group))
    if guards and not context.guarded and context.claims_let_go:
        return _write(GuardGroup(context.group, present=False))
    return NOTHING


def _let_go(group: PodGroup, in_use: bool | None) -> GroupDecision:
    if in_use is None:
        return GroupDecision(lists=True)
    return NOTHING if in_use else _write(GuardGroup(group, present=False))


def _write(write: GroupWrite) -> GroupDecision:
    return GroupDecision(write)


def _missing(context: GroupCase) -> GroupDecision:
    claims = shared_claims(context.asking)
    if not claims or context.listed:
        return NOTHING
    left = context.settle_seconds - context.quiet
    if left > 0:
        return GroupDecision(after=left)
    owners = {asking.owner.uid: asking.owner for asking in context.asking if asking.claims}
    return GroupDecision(MakeGroup(tuple(owners.values()), claims))


def shared_claims(asking: Iterable[Asking]) -> tuple[PodGroupResourceClaim, ...]:
    """The reserved claims that the pod templates name, in their order; no more than may be."""
    found = {
        (entry.name, entry.resource_claim_name): PodGroupResourceClaim(
            name=entry.name, resource_claim_name=entry.resource_claim_name
        )
        for one in asking
        for entry in one.template.spec.resource_claims
        if entry.resource_claim_name in one.claims
    }
    by_name = {entry.name: entry for entry in reversed(found.values())}
    kept = [entry for entry in found.values() if by_name[entry.name] is entry]
    return tuple(kept[:MAX_CLAIMS])


def lets_go(snapshot: Snapshot, group: PodGroup, blockers: Iterable[Blocker] | None) -> bool:
    """Whether the claim gets along without the group's object.

    It is not allocated, or does not list the group; or its release can go on only when the group
    is gone, and the hold beside it keeps the device meanwhile. Where nothing is reserved any more,
    KCM deallocates when the group has gone: not before every pod that may have vanished unended
    has had the time that reservations give it by default.

    Args:
        blockers: what stands against the claim's release, but for its finished pods; None when
            the claim is not let go at all.
    """
    uid = group.metadata.uid
    if not snapshot.allocated or all(each.uid != uid for each in snapshot.references):
        return True
    if not snapshot.reservations:
        return _no_ghosts(snapshot)
    held = any(each.uid in _holders(snapshot) for each in snapshot.references)
    return held and blockers is not None and not tuple(blockers) and too_many_finished(snapshot)


def _no_ghosts(snapshot: Snapshot) -> bool:
    memory, grace = snapshot.memory, ClaimReservationSpec().force_deleted_pod_grace_seconds
    ages = [memory.ghost_age.get(ghost.uid, 0.0) for ghost in snapshot.ghosts]
    if memory.blind_age is not None:
        ages.append(memory.blind_age)
    return all(age >= grace for age in ages)


def _holders(snapshot: Snapshot) -> set[str]:
    recorded = (held.reservation.status.reserved_for for held in snapshot.reservations)
    return {reference.uid for reference in recorded if reference is not None}
