"""What a write to the claim or the reservation means for everybody who holds a view of it."""

from __future__ import annotations

from dataclasses import dataclass

from labs.model.dialects import ModelDialect
from labs.model.state import (
    LISTED,
    WAITING,
    Claim,
    GroupObject,
    ListEntry,
    ModelProcess,
    News,
    Opening,
    Reservation,
    There,
    World,
    Write,
)
from labs.model.views import opens, see_claim, seen_listed, without_ends

CLAIM_WRITES = ("list", "claim-finalizer")
GIVEN_UP = Write("given up", (), ())


@dataclass(frozen=True)
class Bounds:
    """How much of everything; lags are in versions of the claim."""

    pods: int = 2
    processes: int = 1
    crashes: int = 1
    actions: int = 1
    lost: int = 0
    lag: int = 2
    """Of the scheduler's cache."""
    cache_lag: int = 2
    """Of claimctl's cache of the claim; its other caches may always be late."""
    two_step_start: bool = False
    """Whether a restarted process lists the claim before it lists the pods; claimctl does not."""
    finish: bool = True
    """Whether pods finish, and finished ones are deleted, although the workload wants them."""
    ghosts_seen: bool = True
    """Whether a force-deletion is in the pod cache before a live LIST that misses the pod: claimctl
    acts on its last LIST only once the pod cache has reached the LIST's version."""
    parting_seen: bool = True
    """Whether, when the settle time has passed since one claimctl saw a reservation's deletion, the
    others have seen it too, and their writes that they had decided on before have arrived."""
    fence_left_alone: bool = True
    """Whether nobody deletes the claim while it is allocated and lists nobody who shares it."""
    group_end_seen: bool = True
    """Whether claimctl's cache shows the end of a group when it makes the next; and schedulers know
    that it is gone before they see a later pod."""
    group_lists_last: bool = True
    """Whether no pod of a group comes between its last LIST and the write that lets it go."""
    post_filter: bool = True
    """Whether the scheduler deallocates a claim that lists nobody, for a pod that finds no node."""
    graceful: bool = False
    """Whether pods that a workload wants no more are deleted, and end some time after that."""
    one_by_one: bool = False
    """Whether the workload makes a pod only when no other is alive."""
    nominates: bool = False
    """Whether a pod that is being bound shows its node (``status.nominatedNodeName``)."""
    prompt_kcm: bool = False
    """Whether KCM puts the group back before a settle time is over."""
    held: bool = False
    """Whether the start is a held claim with a running pod that is listed."""
    idle: bool = False
    """Whether the pod of that start has gone."""
    reserved: bool = True
    """Whether that start has a reservation. Without one, nobody holds the claim."""
    mixed_schedulers: bool = False
    """native: whether a scheduler without the feature leads now and then."""
    beyond: bool = False
    """Whether the scheduler's cache may lag behind by more than the settle time, and pods be bound
    later than the binding time after what the scheduler saw."""
    kinds: frozenset[str] = frozenset(
        {"scale", "end", "delete", "recreate", "force", "delete claim", "withdraw"}
    )
    """What the user may do."""
    forced: frozenset[str] = frozenset()
    """Kinds of writes that do not carry the resourceVersion they were decided on."""
    compared: bool = True
    """Whether the server compares the list of a write that does not carry the version."""
    yield_reason: bool = False
    """Whether a process whose write was refused never tries again."""
    gaps: int = 0
    """How often the watches of a process break."""
    notes: bool = True
    """Whether a process notes the listed pods of every version, and not only of the latest."""
    live_claims: bool = True
    """Whether a reservation is let go only if the claim, read live, shows nothing of it either."""
    checkpoints: bool = False
    """Whether leaders note checkpoints, and processes that start begin there."""
    restores: bool = False
    """Whether etcd may be restored from a backup of the start, which has a checkpoint."""
    live_lists: bool = True
    """Whether pods are listed live (or else taken from the cache)."""

    @property
    def oldest(self) -> int:
        """Older than anything that claimctl's cache may show."""
        return max(self.lag, self.cache_lag) + 1


def write_claim(world: World, claim: Claim, dialect: ModelDialect, bounds: Bounds) -> World:
    """A new version: views grow older, writes decided on the one before come too late."""
    if not claim.allocated and claim.finalizer == 0 and claim.there == There.DELETING:
        claim = Claim(There.GONE, 0, 0, 0, (0,) * len(claim.entries))
    lag = bounds.lag
    free = tuple(
        0 if dialect.frees(claim, pod) else _older(age, lag) for pod, age in enumerate(world.free)
    )
    return world._replace(
        claim=claim,
        delisted=_delisted(world, claim),
        stripped=int(world.stripped and not claim.groups),
        free=free,
        cleared=tuple(age if age < 0 else min(age + 1, bounds.oldest) for age in world.cleared),
        news=world.news | News.CLAIM,
    )


def _delisted(world: World, claim: Claim) -> tuple[int, ...]:
    """Pods whose entry another version had, and this one has not."""
    return tuple(
        int((was or world.claim.entries[pod] in LISTED) and world.pods[pod] in WAITING)
        if claim.entries[pod] == ListEntry.NONE
        else 0
        for pod, was in enumerate(world.delisted)
    )


def _older(age: int, lag: int) -> int:
    return age + 1 if 0 <= age < lag else -1


def write_reservation(world: World, reservation: Reservation) -> World:
    if reservation.there == There.DELETING and not reservation.finalizer:
        none = (0,) * len(reservation.ghosts)
        reservation = Reservation(There.GONE, 0, 0, 0, 0, 0, none)
    return world._replace(reservation=reservation, news=world.news | News.RESERVATION)


def write_group(world: World, group: GroupObject) -> World:
    if group.there == There.DELETING and not group.guarded and not group.protected:
        group = GroupObject(There.GONE, group.incarnation)
    return world._replace(group=group)


def drop_views(world: World, age: int) -> World:
    """The scheduler's cache has moved on: it shows nothing older than ``age`` any more."""
    if all(free <= age for free in world.free):
        return world
    return world._replace(free=tuple(free if free <= age else -1 for free in world.free))


def idled(world: World) -> World:
    """The idle timeout passes."""
    return world._replace(
        reservation=world.reservation._replace(idle=2), news=world.news | News.IDLED
    )


def overtaken(
    process: ModelProcess, world: World, dialect: ModelDialect, bounds: Bounds
) -> ModelProcess:
    """The process after somebody else's writes: a write on its way will be refused now."""
    if world.news & News.CLAIM:
        process = _behind(process, world.claim, dialect, bounds)
    if world.news & News.RESERVATION:
        process = process._replace(fresh=0)
    if world.news & News.ANEW:
        process = without_ends(process, world, dialect)
    if world.news & News.IDLED and process.reservation.idle == 1:
        process = process._replace(reservation=process.reservation._replace(idle=2))
    return process


def _behind(
    process: ModelProcess, claim: Claim, dialect: ModelDialect, bounds: Bounds
) -> ModelProcess:
    """Of what is refused for its version it makes no difference whether it was ever sent.

    A write that is compared with the list stays on its way: the list may be the same again.
    """
    write = process.write
    if write is not None and write.kind not in bounds.forced and not write.present:
        process = process._replace(write=GIVEN_UP if bounds.yield_reason else None)
    if process.age >= bounds.cache_lag:
        return see_claim(process, claim, dialect)
    opened = tuple(
        Opening.COMING if opens(claim, pod, dialect) else was
        for pod, was in enumerate(process.opened)
    )
    came = seen_listed(process, claim)
    listed = zip(claim.entries, process.noted, strict=True)
    noted = tuple(was or 2 * ((entry in LISTED) and bounds.notes) for entry, was in listed)
    return process._replace(age=process.age + 1, opened=opened, noted=noted, came=came)
