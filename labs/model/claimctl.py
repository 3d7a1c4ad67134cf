"""claimctl's processes: late caches, a memory, at most one write on its way, crashes anywhere."""

from __future__ import annotations

from collections.abc import Iterator

from labs.model import checkpoints, grouping
from labs.model.cluster import ModelStep, lacks_group
from labs.model.dialects import ModelDialect
from labs.model.judge import Judge, Judgement
from labs.model.promises import broken_by, left_behind
from labs.model.server import (
    CLAIM_WRITES,
    GIVEN_UP,
    Bounds,
    drop_views,
    overtaken,
    write_claim,
    write_group,
    write_reservation,
)
from labs.model.state import (
    ON_NODE,
    OVER,
    REMOVED,
    Claim,
    Ghost,
    ListEntry,
    ModelPhase,
    ModelPod,
    ModelProcess,
    Opening,
    Reservation,
    There,
    World,
    Write,
)
from labs.model.views import (
    dead,
    deliveries,
    gapped,
    list_pods,
    restarted,
    see_claim,
    see_group,
    see_reservation,
)

Own = tuple[str, ModelProcess, World]
"""What a process does, and what becomes of it and of the world."""


class Claimctl:
    """The steps of one process; ``alone`` tells what they depend on of the others."""

    def __init__(self, dialect: ModelDialect, bounds: Bounds) -> None:
        self._dialect = dialect
        self._bounds = bounds
        self.judge = Judge(dialect)

    def steps(self, world: World, process: ModelProcess, *, alone: bool) -> Iterator[ModelStep]:
        """
        Args:
            alone: whether no other process acts any more on what it knew before the
                reservation's deletion.
        """
        if not process.synced:
            yield _step("lists the pods", list_pods(process, world), world)
        else:
            for what, seen in deliveries(world, process, self._dialect):
                yield _step(what, seen, world)
            if process.write is not None:
                yield from self._send(world, process, process.write)
            else:
                yield from self._think(world, process, alone)
            if self._dialect.groups:
                yield from self._group(world, process)
        yield from self._troubles(world, process)

    def _troubles(self, world: World, process: ModelProcess) -> Iterator[ModelStep]:
        """The process is killed, or its watches break."""
        if world.left.crashes:
            left = world.left._replace(crashes=world.left.crashes - 1, unlucky=1)
            killed = checkpoints.spent(world._replace(left=left))
            for what, again in self._starts(world):
                if again != process:
                    yield _step(f"is killed and {what}", again, killed, fair=False)
            yield from self._restores(world)
        if self._bounds.checkpoints:
            for what, at in checkpoints.steps(world, process, self.judge):
                yield _step(what, process, at, fair=False)
        if world.left.gaps and process.synced:
            yield from self._gaps(world, process)

    def _starts(self, world: World) -> Iterator[tuple[str, ModelProcess]]:
        yield "starts again", restarted(world, two_step=self._bounds.two_step_start)
        yield from checkpoints.begun(world, self._dialect)

    def _restores(self, world: World) -> Iterator[ModelStep]:
        """All servers stop, and so does the process: its Lease goes back to an older version."""
        if (at := checkpoints.restored(world)) is not None:
            for what, again in checkpoints.begun_anew(at, self._dialect):
                yield _step(f"loses etcd to a backup and {what}", again, at, fair=False)

    def _gaps(self, world: World, process: ModelProcess) -> Iterator[ModelStep]:
        """The watch of the pods breaks, or that of the claim, too; then comes a LIST."""
        at = world._replace(left=world.left._replace(gaps=world.left.gaps - 1))
        kinds = ((False, "lists the pods again"), (True, "lists everything again"))
        for claims, what in kinds:
            again = gapped(process, world, self._dialect, claims=claims)
            if again != process:
                yield _step(what, again, at, fair=False)

    # deciding

    def _think(self, world: World, process: ModelProcess, alone: bool) -> Iterator[ModelStep]:
        verdict = self._verdict(world, process)
        if verdict.write is not None:
            if not (
                verdict.listed and self._bounds.ghosts_seen and _misses_a_ghost(world, process)
            ):
                yield from self._act(world, process, verdict.write)
            return
        for what, aged, at in self._waits(world, process, alone):
            then = self._verdict(world, aged)
            differs = (then.write, then.waits_for) != (verdict.write, verdict.waits_for)
            if differs or self._lets_group_go(process, aged):
                yield _step(what, aged, at)

    def _act(self, world: World, process: ModelProcess, write: Write) -> Iterator[ModelStep]:
        """Writes to the claim travel; what is late from the start is refused and changes nothing.

        A write to the reservation is made at once: whatever happens between decision and write
        either does not touch the reservation, so that it may as well happen afterwards, or has the
        write refused.
        """
        late = process.age > 0 if write.kind in CLAIM_WRITES else not process.fresh
        if late and (write.kind not in self._bounds.forced or world.claim.there == There.GONE):
            return
        if write == LETS_GO and self._bounds.live_claims:
            live = see_claim(process, world.claim, self._dialect) if process.age else process
            if self._verdict(world, live).write != write:
                return
        if write.kind in CLAIM_WRITES:
            early = int(process.reservation.there == There.YES)
            bound = int(any(there in ON_NODE for there in world.pods))
            lets_go = int(self._dialect.late and _lets_claim_go(write, process))
            joins = int(self._dialect.late and _joins(write, process))
            told = write._replace(early=early, bound=bound, lets_go=lets_go, joins=joins)
            sent = process._replace(write=told)
            yield _step(f"decides: {describe(write)}", sent, world)
        else:
            yield from self._send(world, process, write)

    def _group(self, world: World, process: ModelProcess) -> Iterator[ModelStep]:
        """Made at once, as writes to the reservation; a late one is refused."""
        write = self.judge.group_write(process)
        if write == grouping.LISTS:
            pods = world.pods if self._bounds.group_lists_last else process.pods
            write = self.judge.group_write(process, listed=grouping.in_use(pods))
            if write is None:
                return
        if write is None:
            yield from self._quiet(world, process)
            return
        group = grouping.written(world, process, write)
        unseen = process.group != world.group
        if group is None or (unseen and self._bounds.group_end_seen):
            return
        after = write_group(world, group)
        noted = see_group(process, after.group)
        what = grouping.TOLD[write.values[0]]
        yield _step(what, noted, after)
        if world.left.lost:
            unheard = after._replace(left=world.left._replace(lost=world.left.lost - 1, unlucky=1))
            yield _step(f"{what} and hears no answer", process, unheard, fair=False)

    def _quiet(self, world: World, process: ModelProcess) -> Iterator[ModelStep]:
        """By then the scheduler acts on nothing that it knew of an earlier group of the name."""
        if process.quiet or process.group.there != There.GONE or process.claim.groups:
            return
        if process.workload != world.workload:
            return
        if max(world.cleared) > process.age or self.judge.group_write(process) is not None:
            return
        aged = process._replace(quiet=1)
        if self.judge.group_write(aged) is None:
            return
        at = drop_views(world, process.age)
        if process.group == world.group:
            at = at._replace(group_seen=-1)
        yield _step("waits until the group's name is forgotten", aged, at)

    def _lets_group_go(self, process: ModelProcess, aged: ModelProcess) -> bool:
        """Whether a wait that is over has claimctl do something about the group."""
        if not self._dialect.groups:
            return False
        return self.judge.group_write(aged) != self.judge.group_write(process)

    def _verdict(self, world: World, process: ModelProcess) -> Judgement:
        pods = world.pods if self._bounds.live_lists else process.pods
        return self.judge.verdict(process, pods, world.workload)

    def _waits(self, world: World, process: ModelProcess, alone: bool) -> Iterator[Own]:
        """Waits that may end now; the world has to be as their length says."""
        yield from self._settles(world, process)
        yield from self._binds(world, process)
        if self._may_part(process, alone):
            what = "waits out the settle time since the reservation's deletion"
            yield what, process._replace(withdrawn_settled=1), world
        haunted = zip(process.ghosts, world.pods, strict=True)
        if process.blind and not any(
            known == Ghost.BEFORE and there == ModelPod.GHOST for known, there in haunted
        ):
            yield "waits out its blind grace", process._replace(blind=0), world
        expired = tuple(
            _EXPIRED.get(known, known) if there != ModelPod.GHOST else known
            for known, there in zip(process.ghosts, world.pods, strict=True)
        )
        if expired != process.ghosts:
            yield "waits out a ghost's grace", process._replace(ghosts=expired), world
        overdue = dead(process)
        if overdue != process.overdue:
            yield "finds that KCM had its time", process._replace(overdue=overdue), world

    def _may_part(self, process: ModelProcess, alone: bool) -> bool:
        waits = process.reservation.there == There.DELETING and not process.withdrawn_settled
        return waits and (alone or not self._bounds.parting_seen)

    def _settles(self, world: World, process: ModelProcess) -> Iterator[Own]:
        """By then the scheduler acts on nothing older than what this process has seen."""
        beyond = self._bounds.beyond
        if self._bounds.prompt_kcm and lacks_group(world, self._dialect):
            return
        if process.claim.there == There.DELETING:
            if not process.deleting_settled:
                at = world if beyond else drop_views(world, -1)
                aged = process._replace(deleting_settled=1)
                yield "waits out the settle time since the deletion", aged, at
        elif not process.settled:
            at = world if beyond else drop_views(world, process.age)
            yield "waits out the settle time", process._replace(settled=1), at

    def _binds(self, world: World, process: ModelProcess) -> Iterator[Own]:
        """The binding times. Pods that are still open to the claim have yet to be fenced.

        When the time is over that counts for a pod, the scheduler has bound it if it does so on
        anything older than what this process has seen.
        """
        if self._dialect.conditions:
            short = self._closed(process, Opening.SHORT_OVER)
            yield from self._closes(world, process, short, "the binding time")
        over = self._closed(process, Opening.OVER)
        late = [not self._bounds.beyond and age > process.age for age in world.cleared]
        over = tuple(
            was if slow else then
            for was, then, slow in zip(process.opened, over, late, strict=True)
        )
        long = "the longer binding time" if self._dialect.conditions else "the binding time"
        yield from self._closes(world, process, over, long)

    def _closed(self, process: ModelProcess, to: Opening) -> tuple[int, ...]:
        claim = process.claim
        return tuple(
            was if was in (Opening.OVER, Opening.COMING) or self._dialect.frees(claim, pod) else to
            for pod, was in enumerate(process.opened)
        )

    def _closes(
        self, world: World, process: ModelProcess, opened: tuple[int, ...], what: str
    ) -> Iterator[Own]:
        if opened == process.opened:
            return
        # both times of a deletion begin with its first sight, and the binding time is longer
        deleting = process.claim.there == There.DELETING
        at = world if self._bounds.beyond else drop_views(world, -1 if deleting else process.age)
        settled = int(process.deleting_settled or deleting)
        yield f"waits out {what}", process._replace(opened=opened, deleting_settled=settled), at

    # writing

    def _send(self, world: World, process: ModelProcess, write: Write) -> Iterator[ModelStep]:
        if write == GIVEN_UP:
            return
        done = process._replace(write=None)
        what = describe(write)
        gone = world.claim if write.kind in CLAIM_WRITES else world.reservation
        if gone.there == There.GONE or (write.present and not self._same(world, write)):
            yield _step(f"is refused: {what}", done, world)
            return
        after, broken = self._accept(world, write)
        if write.kind in self._bounds.forced and broken.startswith(("422", "promise 7")):
            yield _step(f"changes nothing: {what}", done, world)
            return
        if broken.startswith("422"):
            yield _step(f"is refused (422): {what}", done, world, broken=broken)
            return
        yield _step(f"writes: {what}", self._noted(after, done, write), after, broken=broken)
        if world.left.lost:
            deaf = overtaken(done, after, self._dialect, self._bounds)
            unheard = after._replace(left=world.left._replace(lost=world.left.lost - 1, unlucky=1))
            what = f"writes and hears no answer: {what}"
            yield _step(what, deaf, unheard, fair=False, broken=broken)

    def _same(self, world: World, write: Write) -> bool:
        """Whether the claim has the list that the write carries, and is not being deleted."""
        claim = world.claim
        same = (write.present, write.beside) == (claim.listed, claim.beside)
        return (same and claim.there == There.YES) or not self._bounds.compared

    def _accept(self, world: World, write: Write) -> tuple[World, str]:
        if write.kind not in CLAIM_WRITES:
            accepted = write_reservation(world, _with_status(world.reservation, write))
            return accepted, left_behind(world, accepted, self._dialect)
        claim = _written(world.claim, write)
        broken = broken_by(world, write, claim, self._dialect)
        after = world
        if world.claim.allocated and not claim.allocated:
            met = 2 if world.reservation.asked else 0
            after = world._replace(ours=1, reservation=world.reservation._replace(asked=met))
        return write_claim(after, claim, self._dialect, self._bounds), broken

    def _noted(self, world: World, process: ModelProcess, write: Write) -> ModelProcess:
        """Nothing is decided again before the caches show what was written."""
        if write.kind in CLAIM_WRITES:
            cleared = write.kind == "list" and bool(write.values[1])
            seen = see_claim(process, world.claim, self._dialect)
            return seen._replace(deallocated=int(cleared))
        return see_reservation(process, world.reservation)


def _step(
    what: str, process: ModelProcess, world: World, *, fair: bool = True, broken: str = ""
) -> ModelStep:
    return ModelStep("claimctl", what, world, fair, broken, process)


_EXPIRED: dict[int, int] = {Ghost.YOUNG: Ghost.OLD, Ghost.UNSEEN: Ghost.UNSEEN_OLD}
LETS_GO = Write("finalizer", (0,), ())


def _misses_a_ghost(world: World, process: ModelProcess) -> bool:
    pairs = zip(world.pods, process.pods, strict=True)
    return any(there == ModelPod.GHOST and level != REMOVED for there, level in pairs)


def _lets_claim_go(write: Write, process: ModelProcess) -> bool:
    """Whether the write leaves the entries of dead pods alone in the list of a claim that is held,
    or that a pod which vanished may still use, by what the process knows. A pod that its cache
    lacks may be alive."""
    reservation, workload = process.reservation, process.workload
    held = reservation.there == There.YES and workload.phase == ModelPhase.ACTIVE
    released = not held or reservation.step or reservation.asked
    if (released and Ghost.YOUNG not in process.ghosts) or process.claim.there != There.YES:
        return False
    entries = [level for level, entry in zip(process.pods, write.columns, strict=False) if entry]
    alone = write.kind == "list" and write.values == (0, 0, 0)
    return alone and bool(entries) and all(level in (*OVER, REMOVED) for level in entries)


def _joins(write: Write, process: ModelProcess) -> bool:
    """Whether the write adds a hold beside a pod that starts or runs, or may do so, by what the
    process knows. One that is Unschedulable waits in vain."""
    adds = write.kind == "list" and write.values[0] and not process.claim.holders
    if not adds or process.claim.there != There.YES:
        return False
    entries = [level for level, entry in zip(process.pods, write.columns, strict=True) if entry]
    return any(level in (ModelPod.NONE, ModelPod.PENDING, ModelPod.BOUND) for level in entries)


def describe(write: Write) -> str:
    """A write as a trace shows it."""
    if write.kind == "list":
        holders, deallocates, groups = write.values
        names = [f"workload/{number}" for number in range(2) if holders & 1 << number]
        names += [f"group/{number}" for number in range(4) if groups & 1 << number]
        names += [
            f"{'tombstone' if entry == ListEntry.TOMBSTONE else 'pod'}/p{pod}"
            for pod, entry in enumerate(write.columns)
            if entry
        ]
        return f"list [{', '.join(names)}]{' and no allocation' if deallocates else ''}"
    if write.kind == "status":
        _, recorded, idle, step, _ = write.values
        said = [f"reservedFor workload/{recorded - 1}"] if recorded else []
        said += ["idle"] if idle else []
        said += [("", "release Intent", "release Fenced")[step]] if step else []
        said += [f"ghost p{pod}" for pod, ghost in enumerate(write.columns) if ghost]
        return f"status {{{', '.join(said)}}}"
    if write.kind == "finalizer":
        return f"{'puts' if write.values[0] else 'takes'} the reservation's finalizer"
    if write.kind == "request":
        return "takes the request from the reservation"
    return "takes the claim's finalizer"


def _written(claim: Claim, write: Write) -> Claim:
    if write.kind == "claim-finalizer":
        return claim._replace(finalizer=0)
    holders, deallocates, groups = write.values
    allocated = 0 if deallocates else claim.allocated
    return claim._replace(
        holders=holders, groups=groups, entries=write.columns, allocated=allocated
    )


def _with_status(reservation: Reservation, write: Write) -> Reservation:
    if write.kind == "finalizer":
        return reservation._replace(finalizer=write.values[0])
    if write.kind == "request":
        return reservation._replace(asked=0)
    known, recorded, idle, step, named = write.values
    return reservation._replace(
        known=known, recorded=recorded, idle=idle, step=step, named=named, ghosts=write.columns
    )
