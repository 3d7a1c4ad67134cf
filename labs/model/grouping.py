"""What claimctl does about the PodGroup: the real ``decide_group``, asked from the caches."""

from __future__ import annotations

from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.pod_groups.case import (
    Asking,
    DropGroup,
    GroupCase,
    GuardGroup,
    MakeGroup,
    decide_group,
    no_longer_needs,
)
from claimctl.reservation.pod_groups.decide import release_blockers
from claimctl.reservation.users.withdrawal import withdraws_beside_group
from claimctl.wire.pods import PodResourceClaim, PodSpec, PodTemplateSpec
from labs.model.objects import LONG, owner_of
from labs.model.state import ALIVE, GroupObject, ModelPhase, ModelProcess, There, World, Write
from tests.support import builders

MAKE, GUARD, UNGUARD, DROP = range(4)
TOLD = (
    "makes the group",
    "puts its finalizer on the group",
    "takes its finalizer off the group",
    "deletes the group",
)
_ENTRY = PodResourceClaim(name="gpus", resource_claim_name=builders.CLAIM)
_TEMPLATE = PodTemplateSpec(spec=PodSpec(resource_claims=(_ENTRY,)))


LISTS = Write("group", (), ())
"""No write yet: the pods have to be listed first."""


def write(process: ModelProcess, snapshot: Snapshot, listed: bool | None) -> Write | None:
    decision = decide_group(_case(process, snapshot, listed))
    if decision.lists:
        return LISTS
    decided = decision.write
    match decided:
        case None:
            return None
        case MakeGroup():
            return Write("group", (MAKE, process.workload.incarnation), ())
        case GuardGroup():
            return Write("group", (GUARD if decided.present else UNGUARD, 0), ())
        case DropGroup():
            return Write("group", (DROP, 0), ())


def _case(process: ModelProcess, snapshot: Snapshot, listed: bool | None) -> GroupCase:
    """As the controller makes it; the one claim is all that the group is about."""
    group = next(iter(snapshot.groups), None)
    workload = process.workload
    ours = workload.incarnation == process.group.owner
    return GroupCase(
        group=group,
        asking=_asking(process),
        owner_ended=ours and workload.phase == ModelPhase.ENDED,
        reserved=process.reservation.there != There.GONE and not withdraws_beside_group(snapshot),
        in_use=in_use(process.pods),
        in_use_live=listed,
        unneeded=group is not None and no_longer_needs(snapshot, group, release_blockers(snapshot)),
        listed=bool(process.claim.groups),
        quiet=LONG if process.quiet else 0.0,
    )


def in_use(pods: tuple[int, ...]) -> bool:
    return any(pod in ALIVE for pod in pods)


def _asking(process: ModelProcess) -> tuple[Asking, ...]:
    if process.workload.phase in (ModelPhase.ABSENT, ModelPhase.ENDED):
        return ()
    reserved = {builders.CLAIM} if process.reservation.there == There.YES else set()
    owner = owner_of(process.workload.incarnation)
    return (Asking(owner, _TEMPLATE, frozenset(reserved)),)


def written(world: World, process: ModelProcess, write: Write) -> GroupObject | None:
    """The group after the write, or None where the API server refuses it."""
    group, (what, owner) = world.group, write.values
    if what == MAKE:
        if group.there != There.GONE:
            return None
        return GroupObject(There.YES, group.incarnation + 1, owner, guarded=1, protected=1)
    if process.group != group:
        return None
    if what == DROP:
        return group._replace(there=There.DELETING)
    return group._replace(guarded=int(what == GUARD))
