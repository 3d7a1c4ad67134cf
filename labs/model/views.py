"""What a process holds: caches that are shown news, and a memory of what they once showed."""

from __future__ import annotations

from collections.abc import Iterator

from labs.model.dialects import ModelDialect
from labs.model.state import (
    ALIVE,
    EXISTS,
    LISTED,
    OVER,
    REMOVED,
    WAITING,
    Came,
    Claim,
    Devices,
    Ghost,
    GroupObject,
    ModelPod,
    ModelProcess,
    Opening,
    Reservation,
    There,
    World,
)

KNOWN = (Ghost.YOUNG, Ghost.OLD, Ghost.UNSEEN, Ghost.UNSEEN_OLD)


def see_claim(process: ModelProcess, claim: Claim, dialect: ModelDialect) -> ModelProcess:
    """A new version arrives in the cache; ages are measured from now on."""
    forgets = claim.there == There.GONE
    none = (0,) * len(process.pods)
    seen = process._replace(
        claim=claim,
        age=0,
        settled=0,
        deallocated=0,
        deleting_settled=process.deleting_settled if claim.there == There.DELETING else 0,
        blind=process.blind if claim.allocated else 0,
        known=process.known if claim.allocated else 0,
        quiet=process.quiet if not claim.groups else 0,
        ghosts=none if forgets else process.ghosts,
        told=none if forgets else process.told,
        overdue=none if forgets else process.overdue,
        opened=none if forgets else _opened(process, claim, dialect),
        came=seen_listed(process, claim),
        noted=none if forgets else _noted(process, claim),
        whole=process.whole if claim.allocated else process.whole or 2,
        grouped=0 if forgets else _grouped(process, claim, dialect),
        tainted=process.tainted if claim.allocated else 0,
    )
    return with_unseen(seen)


def gapped(
    process: ModelProcess, world: World, dialect: ModelDialect, *, claims: bool
) -> ModelProcess:
    """After a gap. Pods that are not there any more and were not seen done are ghosts.

    Args:
        claims: whether the watch of the claim had a gap, too. If the claim has changed meanwhile,
            what its list had in between is not known.
    """
    changed = claims and process.age > 0
    if changed:
        noted = tuple(int(note == 1) for note in process.noted)
        listed = process._replace(noted=noted, whole=0, opened=(1,) * len(noted))
        process = see_claim(listed, world.claim, dialect)
        process = process._replace(opened=(1,) * len(noted))
    ghosts = tuple(
        _end_unseen(known, before, there)
        for known, before, there in zip(process.ghosts, process.pods, world.pods, strict=True)
    )
    one_by_one = not process.grouped and not dialect.shared
    allocated = process.claim.allocated or world.claim.allocated
    blind = process.blind if one_by_one and not changed else int(bool(allocated))
    came = (Came.UNKNOWN,) * len(process.came)
    listed = process._replace(pods=levels(world.pods), ghosts=ghosts, blind=blind, came=came)
    return with_unseen(listed)


def _end_unseen(known: int, before: int, there: int) -> int:
    if there in EXISTS:
        return Ghost.NOTHING
    if before in ALIVE:
        return Ghost.YOUNG
    if before in OVER:
        return Ghost.SEEN_DONE
    if known in (Ghost.UNSEEN, Ghost.UNSEEN_OLD) and before == ModelPod.NONE:
        return Ghost.UNSEEN
    return Ghost.BEFORE if there == ModelPod.GHOST and known == Ghost.NOTHING else known


def _noted(process: ModelProcess, claim: Claim) -> tuple[int, ...]:
    pairs = zip(process.noted, claim.entries, strict=True)
    return tuple(int(bool(was or entry in LISTED)) for was, entry in pairs)


def _opened(process: ModelProcess, claim: Claim, dialect: ModelDialect) -> tuple[int, ...]:
    """Schedulers begin nothing new on a claim that is being deleted, whoever is listed."""
    anew = claim.there != There.DELETING or process.claim.there != There.DELETING
    return tuple(
        Opening.SEEN if was == Opening.COMING or (anew and opens(claim, pod, dialect)) else was
        for pod, was in enumerate(process.opened)
    )


def _grouped(process: ModelProcess, claim: Claim, dialect: ModelDialect) -> int:
    """Only a listed group opens a claim to the pods of a group."""
    coming = dialect.groups and Opening.COMING in process.opened
    return int(bool(process.grouped or claim.groups or coming))


def opens(claim: Claim, pod: int, dialect: ModelDialect) -> bool:
    """Whether a claim is open to a pod, or was when its deletion began."""
    return dialect.frees(claim, pod) or claim.entries[pod] in LISTED


def without_ends(process: ModelProcess, world: World, dialect: ModelDialect) -> ModelProcess:
    """A pod that is there no more, and whose number is free again, is forgotten."""
    listed = not dialect.groups and not dialect.shared
    free = [there == ModelPod.NONE for there in world.pods]

    def kept(columns: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(0 if forgotten else was for was, forgotten in zip(columns, free, strict=False))

    return process._replace(
        pods=kept(process.pods),
        ghosts=kept(process.ghosts),
        told=kept(process.told),
        overdue=kept(process.overdue),
        opened=kept(process.opened) if listed else process.opened,
        came=kept(process.came),
        noted=kept(process.noted),
    )


def seen_listed(process: ModelProcess, claim: Claim) -> tuple[int, ...]:
    """The watch shows each version: a pod that was listed once is known to have been."""
    return tuple(
        Came.LISTED if claim.entries[pod] and process.pods[pod] <= ModelPod.NOMINATED else known
        for pod, known in enumerate(process.came)
    )


def levels(pods: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(min(pod, REMOVED) for pod in pods)


def deliveries(
    world: World, process: ModelProcess, dialect: ModelDialect
) -> Iterator[tuple[str, ModelProcess]]:
    if process.age > 0:
        yield "is shown the claim", see_claim(process, world.claim, dialect)
    if not sees_pods(world, process):
        seen = watch_pods(process, world)
        yield "is shown the pods", seen
        if Came.NOW in seen.came:
            late = (Came.EARLIER if came == Came.NOW else came for came in seen.came)
            yield "is shown the pods and is slow to act", seen._replace(came=tuple(late))
    if Came.EARLIER in process.came:
        again = (Came.NOW if came == Came.EARLIER else came for came in process.came)
        yield "is told that the scheduler failed to bind", process._replace(came=tuple(again))
    if not process.fresh:
        yield "is shown the reservation", see_reservation(process, world.reservation)
    if process.workload != world.workload:
        yield "is shown the workload", process._replace(workload=world.workload)
    if process.group != world.group:
        yield "is shown the group", see_group(process, world.group)
    tainted = int(world.devices == Devices.TAINTED)
    if process.tainted != tainted:
        yield "is shown the devices", process._replace(tainted=tainted)
    closed = int(world.devices == Devices.CLOSED)
    if process.closed != closed:
        yield "is shown the node", process._replace(closed=closed)


def see_group(process: ModelProcess, group: GroupObject) -> ModelProcess:
    """A watch shows every life under a name, also one that is over by now."""
    return process._replace(group=group, quiet=0)


def sees_pods(world: World, process: ModelProcess) -> bool:
    return process.pods == levels(world.pods)


def see_reservation(process: ModelProcess, reservation: Reservation) -> ModelProcess:
    ghosts, named = _recorded(process, reservation)
    settled = process.withdrawn_settled if reservation.there == There.DELETING else 0
    seen = process._replace(
        reservation=reservation, fresh=1, ghosts=ghosts, told=named, withdrawn_settled=settled
    )
    return without_record(seen) if reservation.there == There.GONE else seen


def without_record(process: ModelProcess) -> ModelProcess:
    """The reservation has gone, and with it what it told of the time before the checkpoint."""
    blind = int(bool(process.blind or (process.known and process.claim.allocated)))
    return process._replace(blind=blind, known=0, told=(0,) * len(process.told))


def _recorded(
    process: ModelProcess, reservation: Reservation
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ghosts that a status names are known from now on, and known to have been told of."""
    ghosts = tuple(
        Ghost.YOUNG if named and known in (Ghost.NOTHING, Ghost.SEEN_DONE, Ghost.BEFORE) else known
        for known, named in zip(process.ghosts, reservation.ghosts, strict=True)
    )
    names = tuple(
        int(before or named) for before, named in zip(process.told, reservation.ghosts, strict=True)
    )
    return ghosts, names


def watch_pods(process: ModelProcess, world: World) -> ModelProcess:
    ghosts = tuple(
        _end(known, before, there)
        for known, before, there in zip(process.ghosts, process.pods, world.pods, strict=True)
    )
    came = tuple(
        _came(known, before, there, entry)
        for known, before, there, entry in zip(
            process.came, process.pods, world.pods, process.claim.entries, strict=False
        )
    )
    whole = int(bool(process.whole))
    seen = process._replace(pods=levels(world.pods), ghosts=ghosts, came=came, whole=whole)
    return with_unseen(seen)


def _came(known: int, before: int, there: int, entry: int) -> int:
    if there not in WAITING:
        return known if there == ModelPod.NONE else Came.UNKNOWN
    if before != ModelPod.NONE or known == Came.LISTED:
        return known
    return Came.LISTED if entry else Came.NOW


def _end(known: int, before: int, there: int) -> int:
    """A watch shows how a pod went; one that comes was no ghost."""
    if there in EXISTS:
        return Ghost.NOTHING
    if there == ModelPod.NONE or before == REMOVED:
        return known
    return Ghost.SEEN_DONE if there == ModelPod.QUIET else Ghost.YOUNG


def with_unseen(process: ModelProcess) -> ModelProcess:
    """Listed pods that the cache never showed; and who is not dead and listed is not overdue."""
    ghosts = tuple(
        Ghost.UNSEEN
        if noted == 1
        and level in (ModelPod.NONE, REMOVED)
        and known in (Ghost.NOTHING, Ghost.BEFORE)
        else known
        for known, noted, level in zip(process.ghosts, process.noted, process.pods, strict=True)
    )
    known = zip(process.told, ghosts, strict=True)
    named = tuple(int(was and ghost in KNOWN) for was, ghost in known)
    process = process._replace(ghosts=ghosts, told=named)
    if any(process.overdue):
        kept = zip(process.overdue, dead(process), strict=True)
        process = process._replace(overdue=tuple(int(was and still) for was, still in kept))
    return process


def dead(process: ModelProcess) -> tuple[int, ...]:
    return tuple(
        int(entry in LISTED and level not in ALIVE)
        for entry, level in zip(process.claim.entries, process.pods, strict=True)
    )


def restarted(world: World, *, two_step: bool) -> ModelProcess:
    none = (0,) * len(world.pods)
    process = ModelProcess(
        claim=world.claim,
        age=0,
        reservation=world.reservation,
        fresh=1,
        workload=world.workload,
        pods=none,
        ghosts=none,
        told=none,
        overdue=none,
        settled=0,
        deleting_settled=0,
        blind=int(world.claim.allocated),
        synced=0,
        group=world.group,
        quiet=0,
        write=None,
        opened=(1,) * len(world.pods),
        came=(Came.UNKNOWN,) * len(world.delisted),
        noted=tuple(int(entry in LISTED) for entry in world.claim.entries),
        whole=int(not world.claim.allocated),
        grouped=int(bool(world.claim.groups)),
    )
    return process if two_step else list_pods(process, world)


def list_pods(process: ModelProcess, world: World) -> ModelProcess:
    ghosts = tuple(Ghost.BEFORE if pod == ModelPod.GHOST else Ghost.NOTHING for pod in world.pods)
    listed = process._replace(pods=levels(world.pods), ghosts=ghosts, synced=1)
    known, named = _recorded(listed, process.reservation)
    return with_unseen(listed._replace(ghosts=known, told=named))
