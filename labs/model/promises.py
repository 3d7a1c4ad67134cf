"""The promises, judged from the model's server alone."""

from __future__ import annotations

from labs.model.dialects import ModelDialect, finds_no_node
from labs.model.state import (
    ALIVE,
    EXISTS,
    LISTED,
    ON_NODE,
    WAITING,
    Claim,
    Devices,
    ListEntry,
    ModelPhase,
    ModelPod,
    There,
    World,
    Write,
)

IN_USE = (*ON_NODE, ModelPod.GHOST)


def broken_by(world: World, write: Write, claim: Claim, dialect: ModelDialect) -> str:
    """Which promise a write of claimctl to the claim breaks; '' for none.

    What begins with 422 is refused by the API server, so nothing comes of it.
    """
    if write.kind == "claim-finalizer":
        return _finalizer(world)
    before = world.claim
    if not before.allocated or (before.there == There.DELETING and _adds(before, claim)):
        return "422: promise 4: an addition that the API forbids"
    if not claim.allocated and not claim.empty:
        return "422: promise 5: the allocation cleared with references left"
    if world.reservation.there == There.GONE and claim.holders & ~before.holders:
        return "promise 5: a hold for a reservation that is gone"
    if claim == before:
        return "promise 7: a write without effect"
    if not claim.allocated:
        used = [pod for pod, there in enumerate(world.pods) if there in IN_USE]
        if used:
            return f"promise 1: deallocated while p{used[0]} uses the device"
    elif claim.empty and not (_may_empty(before, dialect) and world.reservation.there):
        return "promise 5: the list emptied beside an allocation that nobody will clear"
    elif _leaves_alone(write, before, claim):
        return "promise 5: the hold taken out beside a group of which no pod was bound"
    return _entries(world, write, claim, dialect) or _late(write)


def _late(write: Write) -> str:
    """Promise 8: a late hold keeps the claim from one pod to the next, and no pod from starting.

    What counts is what the process knew: meanwhile the last pod that is alive may have ended.
    """
    if write.joins:
        return "promise 8: a hold joins a pod that may start"
    if write.lets_go:
        return "promise 8: the hold goes before the entries of dead pods, so that KCM deallocates"
    return ""


def _leaves_alone(write: Write, before: Claim, after: Claim) -> bool:
    """Whether only a group is left in the list that schedulers may take out (PostFilter).

    What counts is whether a pod of the group was bound at the live LIST before the write.
    """
    left = after.groups and not after.holders and not any(after.entries)
    return bool(before.holders and left and not write.bound)


def _may_empty(before: Claim, dialect: ModelDialect) -> bool:
    """By a fence, or where a hold is late."""
    return dialect.shared or bool(before.groups) or dialect.late


def _finalizer(world: World) -> str:
    if world.claim.allocated:
        return "promise 5: an allocated claim without the finalizer: KCM never deallocates it"
    if not world.ours and not world.reservation.step:
        return "promise 5: took the finalizer of a claim that it did not deallocate"
    if not world.claim.finalizer:
        return "promise 7: a write without effect"
    return ""


def _adds(before: Claim, after: Claim) -> bool:
    entries = zip(before.entries, after.entries, strict=True)
    return bool(after.holders & ~before.holders) or any(new and new != old for old, new in entries)


def _entries(world: World, write: Write, after: Claim, dialect: ModelDialect) -> str:
    """Promise 2: what of pods was taken out was dead, or stands in another form."""
    present = 0 if world.group.there == There.GONE else 1 << world.group.incarnation
    taken = world.claim.groups & ~after.groups
    if taken & present and after.holders and not _let_go(world):
        return "promise 2: the group taken out beside a hold, and it is there"
    folds = dialect.shared and after.holders
    for pod, (old, new) in enumerate(zip(world.claim.entries, after.entries, strict=True)):
        there = world.pods[pod]
        if new == ListEntry.AHEAD and old == ListEntry.NONE:
            if wrong := _listed_ahead(world, write, after, pod, dialect):
                return wrong
        elif old == ListEntry.POD and new == ListEntry.NONE and there in ALIVE:
            if not folds and not _in_vain(world, write, after, there):
                now = ModelPod(there).name.lower()
                return f"promise 2: the entry of p{pod} removed, which is {now}"
        elif new == ListEntry.TOMBSTONE and old != new and there in ALIVE:
            return f"promise 2: a tombstone for p{pod}, which is {ModelPod(there).name.lower()}"
    return ""


def _in_vain(world: World, write: Write, after: Claim, there: int) -> bool:
    """Whether a waiting pod gives way: its claim is being deleted, or the devices are given up.

    No pod was bound when this was decided, and a hold stays. If the pod is bound nevertheless, KCM
    lists it again, and the release is judged.
    """
    if world.claim.there == There.DELETING:
        return there in WAITING
    stuck = there in (ModelPod.REFUSED, ModelPod.STUCK, ModelPod.NOMINATED, *ON_NODE)
    return stuck and bool(world.reservation.step and after.holders) and not write.bound


def _listed_ahead(world: World, write: Write, after: Claim, pod: int, dialect: ModelDialect) -> str:
    """A pod is listed ahead beside a hold that stays, and not again when its entry was taken out.

    What a process decided before it saw that the reservation is being deleted may come late.
    """
    if dialect.late:
        return f"p{pod} listed ahead of the scheduler, and its driver wants one pod in the list"
    if not after.holders or not write.early:
        return f"p{pod} listed ahead of the scheduler, and no hold is to stay in the list"
    if world.delisted[pod]:
        return f"p{pod} listed ahead again, although its entry was taken out"
    return ""


def _let_go(world: World) -> bool:
    """Whether anything asks for a release, or one is on record."""
    held = world.reservation.there == world.claim.there == There.YES
    asked = bool(world.reservation.step or world.reservation.asked)
    return not held or world.workload.phase != ModelPhase.ACTIVE or asked


def left_behind(before: World, after: World, dialect: ModelDialect) -> str:
    """Promise 5: a reservation goes only when nothing of it is left in the claim."""
    gone = before.reservation.there and not after.reservation.there
    claim = before.claim
    left = claim.holders if before.reservation.recorded or not dialect.shared else claim.empty
    left = left or (dialect.late and claim.empty)
    if gone and claim.allocated and left:
        return "promise 5: the reservation let go, and its claim left as it was"
    return ""


def broken_in(world: World) -> str:
    """What is wrong with a world, however it came about."""
    if world.claim.allocated and not world.claim.finalizer:
        return "an allocated claim without the finalizer: nobody will deallocate it"
    if world.claim.allocated:
        return ""
    for pod, there in enumerate(world.pods):
        if there in ON_NODE:
            return f"p{pod} is bound on a claim without allocation"
    return ""


def wrong_at_rest(world: World, dialect: ModelDialect) -> str:
    """Why a state in which nothing more will happen is not the right one; '' if it is."""
    if stuck := _stuck(world, dialect):
        return stuck
    if world.reservation.asked == 2:
        return "a request to give the devices up stands, although that was done"
    if world.reservation.there == There.GONE and (left := _listed_ahead_still(world)):
        return f"leaked: the entry of {left}, which claimctl listed ahead"
    if dialect.late and (wrong := _late_at_rest(world)):
        return wrong
    if any(there in IN_USE for there in world.pods):
        return _unheld(world, dialect)
    if world.reservation.there == There.GONE and world.claim.holders:
        return "" if dialect.shared else "leaked: a hold for a reservation that is gone"
    return _unused(world, dialect)


def _late_at_rest(world: World) -> str:
    """A late hold stands in the list while the last pod leaves, and at no other time.

    It stays while a finished pod is there that KCM would list again, and no other pod is.
    """
    claim = world.claim
    ours = claim.holders or ListEntry.TOMBSTONE in claim.entries
    if world.reservation.there == There.GONE:
        return "leaked: an entry of claimctl's, and its reservation is gone" if ours else ""
    if not claim.usable or world.reservation.there == There.DELETING:
        return ""
    pairs = zip(claim.entries, world.pods, strict=True)
    users = [there for entry, there in pairs if entry in LISTED and there in ALIVE]
    leaves = bool(users) and all(there == ModelPod.LEAVING for there in users)
    evicts = world.devices == Devices.TAINTED
    if leaves and not claim.holders and not _let_go(world) and not evicts:
        return "the last pod leaves, and no hold keeps its device"
    if ours and not leaves and ModelPod.DONE not in world.pods:
        return "an entry of claimctl's stands in the list, and no pod leaves"
    return ""


def _listed_ahead_still(world: World) -> str:
    """Entries of waiting pods that nobody takes out but who listed them ahead."""
    pairs = zip(world.claim.entries, world.pods, strict=True)
    left = (entry == ListEntry.AHEAD and there in WAITING for entry, there in pairs)
    return ", ".join(f"p{pod}" for pod, listed in enumerate(left) if listed)


def _stuck(world: World, dialect: ModelDialect) -> str:
    """No pod waits for the claim, and those that are bound may start."""
    for pod, there in enumerate(world.pods):
        if there in WAITING and not _waits_rightly(world, pod, dialect):
            return f"p{pod} waits for ever"
        if there == ModelPod.BOUND and not dialect.may_start(world.claim, pod):
            if world.stripped and world.claim.there == There.DELETING:
                # PostFilter took the group out while the pod was being bound. Nobody may list
                # anything in a claim that is being deleted, so only deleting the pod helps.
                continue
            return f"p{pod} is bound and may never start"
    return ""


def _waits_rightly(world: World, pod: int, dialect: ModelDialect) -> bool:
    """Whether the pod would wait in a cluster without claimctl, too."""
    if world.claim.there != There.YES:
        return True
    if not dialect.is_other(world.pods, pod) and _ungrouped(world, dialect):
        return True
    on_node = any(there in ON_NODE for there in world.pods)
    in_use = on_node or _left_to_group(world) or _left_by_schedulers(world)
    return in_use and finds_no_node(world, pod, dialect)


def _left_by_schedulers(world: World) -> bool:
    """Whether the list has only entries of several waiting pods, schedulers wrote them, and the
    reservation is gone.

    Such an entry stays when a scheduler ends before it binds the pod. In a cluster without claimctl
    nobody takes it out.
    """
    if world.reservation.there == There.YES:
        return False
    listed = [pod for pod, entry in enumerate(world.claim.entries) if entry]
    left = (
        world.claim.entries[pod] == ListEntry.POD and world.pods[pod] in WAITING for pod in listed
    )
    return len(listed) > 1 and all(left) and world.claim.beside == (0, 0)


def _left_to_group(world: World) -> bool:
    """Whether the reservation was withdrawn beside a running group, which is idle now.

    The group keeps the claim, or the scheduler has taken it out (PostFilter) and left the
    allocation: so it goes in a cluster without claimctl.
    """
    left = world.claim.groups or world.stripped
    return bool(left) and world.reservation.there == There.GONE


def _ungrouped(world: World, dialect: ModelDialect) -> bool:
    """Without a reservation nobody makes the group that the pod waits for."""
    return dialect.groups and not world.group.there and not world.reservation.there


def _unused(world: World, dialect: ModelDialect) -> str:
    """Nobody uses the claim: it is released, or held for a workload that lives."""
    claim, reservation = world.claim, world.reservation
    if claim.there == There.DELETING:
        kept = claim.groups and reservation.there == There.GONE
        return "" if kept else "the deleted claim stays"
    if reservation.there == There.DELETING:
        return "" if _guards_finished(world) else "the deleted reservation stays"
    if reservation.there == There.GONE and world.group.there and world.group.guarded:
        return "the group keeps claimctl's finalizer, and no reservation is left"
    if world.group.there == There.DELETING and not claim.groups:
        return "the deleted group stays"
    if not claim.allocated:
        return _unfinished(world)
    if reservation.there == There.YES and world.workload.phase != ModelPhase.ACTIVE:
        return "leaked: the workload is over and the claim is still allocated"
    return _unheld(world, dialect)


def _guards_finished(world: World) -> bool:
    """Whether the claim is left to its group, and finished pods that are there have tombstones."""
    claim = world.claim
    pairs = zip(claim.entries, world.pods, strict=True)
    finished = ((entry, there) == (ListEntry.TOMBSTONE, ModelPod.DONE) for entry, there in pairs)
    return bool(claim.groups) and not claim.holders and any(finished)


def _unfinished(world: World) -> str:
    """What is left over of a release after the allocation has gone.

    The finalizer may stay where a process died, or heard no answer, between the two writes, and
    the reservation has gone: it does no harm, as KCM takes it from a claim that is deleted.
    """
    if world.reservation.step:
        return "a release on record that has no end"
    if world.claim.finalizer and world.ours and not world.left.unlucky:
        return "the finalizer stays on a claim that claimctl deallocated"
    return ""


def _unheld(world: World, dialect: ModelDialect) -> str:
    """While the workload lives its reference has to stand in the claim, unless it is late."""
    claim, workload = world.claim, world.workload
    wanted = (
        claim.usable
        and workload.phase == ModelPhase.ACTIVE
        and world.reservation.there == There.YES
        and any(pod in EXISTS for pod in world.pods)
    )
    if wanted and not claim.holders and not dialect.late and not _left_by_schedulers(world):
        return "the workload lives and does not hold its claim"
    return ""
