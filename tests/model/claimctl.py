"""claimctl's processes: late caches, a memory, at most one write on its way, crashes anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.model import grouping
from tests.model.cluster import Step, lacks_group
from tests.model.dialects import Dialect
from tests.model.judge import Judge, Verdict
from tests.model.promises import broken_by, left_behind
from tests.model.server import (
    CLAIM_WRITES,
    Bounds,
    drop_views,
    write_claim,
    write_group,
    write_reservation,
)
from tests.model.state import (
    REMOVED,
    Claim,
    Entry,
    Ghost,
    Group,
    Pod,
    Process,
    Reservation,
    State,
    There,
    Write,
)
from tests.model.views import (
    dead,
    deliveries,
    list_pods,
    restarted,
    see_claim,
    see_group,
    see_reservation,
    sees_pods,
)


class Claimctl:
    def __init__(self, dialect: Dialect, bounds: Bounds) -> None:
        self._dialect = dialect
        self._bounds = bounds
        self.judge = Judge(dialect)

    def steps(self, state: State) -> Iterator[Step]:
        for number, process in enumerate(state.processes):
            who = f"claimctl-{number}"
            for what, fair, after, broken in self._process(state, number, process):
                yield Step(who, what, after, fair, broken)
        if state.reservation.idle == 1:
            yield Step("time", "the idle timeout passes", _idled(state))

    def _process(
        self, state: State, number: int, process: Process
    ) -> Iterator[tuple[str, bool, State, str]]:
        def become(changed: Process, at: State = state) -> State:
            processes = (*at.processes[:number], changed, *at.processes[number + 1 :])
            return at._replace(processes=processes)

        if not process.synced:
            yield "lists the pods", True, become(list_pods(process, state)), ""
        else:
            for what, seen in deliveries(state, process):
                yield what, True, become(seen), ""
            if process.write is not None:
                yield from self._send(state, process, process.write, become)
            else:
                yield from self._think(state, process, become)
            if self._dialect.groups:
                yield from self._group(state, process, become)
        if state.left.crashes:
            left = state.left._replace(crashes=state.left.crashes - 1)
            again = restarted(state, two_step=self._bounds.two_step_start)
            if again != process:
                yield "is killed and starts again", False, become(again)._replace(left=left), ""

    # deciding

    def _think(
        self, state: State, process: Process, become: Callable[..., State]
    ) -> Iterator[tuple[str, bool, State, str]]:
        verdict = self._verdict(state, process)
        if verdict.write is not None:
            yield from self._act(state, process, verdict.write, become)
            return
        for what, aged, at in self._waits(state, process):
            if self._verdict(state, aged) != verdict:
                yield what, True, become(aged, at), ""

    def _act(
        self, state: State, process: Process, write: Write, become: Callable[..., State]
    ) -> Iterator[tuple[str, bool, State, str]]:
        """Writes to the claim travel; what is late from the start is refused and changes nothing.

        A write to the reservation is made at once: whatever happens between decision and write
        either does not touch the reservation, so that it may as well happen afterwards, or has the
        write refused.
        """
        late = process.age > 0 if write.kind in CLAIM_WRITES else not process.fresh
        if late and (write.kind not in self._bounds.forced or state.claim.there == There.GONE):
            return
        if self._bounds.ghosts_seen and _misses_a_ghost(state, process):
            return
        if self._bounds.parting_seen and not _sees_the_parting(state, process, write):
            return
        if write == LETS_GO and self._bounds.live_claims:
            live = see_claim(process, state.claim) if process.age else process
            if self._verdict(state, live).write != write:
                return
        if write.kind in CLAIM_WRITES:
            yield f"decides: {describe(write)}", True, become(process._replace(write=write)), ""
        else:
            yield from self._send(state, process, write, become)

    def _group(
        self, state: State, process: Process, become: Callable[..., State]
    ) -> Iterator[tuple[str, bool, State, str]]:
        """Made at once, as writes to the reservation; a late one is refused."""
        write = self.judge.group_write(process)
        if write is None:
            yield from self._quiet(state, process, become)
            return
        group = grouping.written(state, process, write)
        if group is None or (self._bounds.group_end_seen and _misses_an_end(state, process, group)):
            return
        after = write_group(state, group)
        noted = see_group(process, after.group)
        what = grouping.TOLD[write.values[0]]
        yield what, True, become(noted, after), ""
        if state.left.lost:
            left = state.left._replace(lost=state.left.lost - 1)
            yield f"{what} and hears no answer", False, after._replace(left=left), ""

    def _quiet(
        self, state: State, process: Process, become: Callable[..., State]
    ) -> Iterator[tuple[str, bool, State, str]]:
        """By then the scheduler acts on nothing that it knew of an earlier group of the name."""
        if process.quiet or process.group.there != There.GONE or process.claim.groups:
            return
        if process.workload != state.workload:
            return
        if max(state.cleared) > process.age or self.judge.group_write(process) is not None:
            return
        aged = process._replace(quiet=1)
        if self.judge.group_write(aged) is None:
            return
        at = drop_views(state, process.age)
        if process.group == state.group:
            at = at._replace(group_seen=-1)
        yield "waits until the group's name is forgotten", True, become(aged, at), ""

    def _verdict(self, state: State, process: Process) -> Verdict:
        pods = state.pods if self._bounds.live_lists else process.pods
        return self.judge.verdict(process, pods, state.workload)

    def _waits(self, state: State, process: Process) -> Iterator[tuple[str, Process, State]]:
        """Waits that may end now; the world has to be as their length says."""
        yield from self._settles(state, process)
        haunted = zip(process.ghosts, state.pods, strict=True)
        if process.blind and not any(
            known == Ghost.BEFORE and there == Pod.GHOST for known, there in haunted
        ):
            yield "waits out its blind grace", process._replace(blind=0), state
        expired = tuple(
            Ghost.OLD if known in (Ghost.YOUNG, Ghost.UNSEEN) and there != Pod.GHOST else known
            for known, there in zip(process.ghosts, state.pods, strict=True)
        )
        if expired != process.ghosts:
            yield "waits out a ghost's grace", process._replace(ghosts=expired), state
        overdue = dead(process)
        if overdue != process.overdue:
            yield "finds that KCM had its time", process._replace(overdue=overdue), state

    def _settles(self, state: State, process: Process) -> Iterator[tuple[str, Process, State]]:
        """By then the scheduler acts on nothing older than what this process has seen."""
        beyond = self._bounds.beyond
        if self._bounds.prompt_kcm and lacks_group(state, self._dialect):
            return
        if process.claim.there == There.DELETING:
            if not process.deleting_settled and (beyond or max(state.cleared) < 0):
                at = state if beyond else drop_views(state, -1)
                aged = process._replace(deleting_settled=1)
                yield "waits out the settle time since the deletion", aged, at
        elif not process.settled and (beyond or max(state.cleared) <= process.age):
            at = state if beyond else drop_views(state, process.age)
            yield "waits out the settle time", process._replace(settled=1), at

    # writing

    def _send(
        self, state: State, process: Process, write: Write, become: Callable[..., State]
    ) -> Iterator[tuple[str, bool, State, str]]:
        done = process._replace(write=None)
        what = describe(write)
        gone = state.claim if write.kind in CLAIM_WRITES else state.reservation
        if gone.there == There.GONE:
            yield f"is refused: {what}", True, become(done), ""
            return
        after, broken = self._accept(become(done), write)
        if write.kind in self._bounds.forced and broken.startswith(("422", "promise 7")):
            yield f"changes nothing: {what}", True, become(done), ""
            return
        if broken.startswith("422"):
            yield f"is refused (422): {what}", True, become(done), broken
            return
        noted = _noted(after, done, write)
        yield f"writes: {what}", True, become(noted, after), broken
        if state.left.lost:
            left = state.left._replace(lost=state.left.lost - 1)
            yield f"writes and hears no answer: {what}", False, after._replace(left=left), broken

    def _accept(self, state: State, write: Write) -> tuple[State, str]:
        if write.kind not in CLAIM_WRITES:
            told = write_reservation(state, _told(state.reservation, write))
            return told, left_behind(state, told, self._dialect)
        claim = _written(state.claim, write)
        broken = broken_by(state, write, claim, self._dialect)
        ours = 1 if state.claim.allocated and not claim.allocated else state.ours
        after = state._replace(ours=ours)
        return write_claim(after, claim, self._dialect, self._bounds), broken


LETS_GO = Write("finalizer", (0,), ())


def _misses_an_end(state: State, process: Process, written: Group) -> bool:
    if written.there == There.DELETING:
        return not sees_pods(state, process)
    return process.group != state.group


def _misses_a_ghost(state: State, process: Process) -> bool:
    pairs = zip(state.pods, process.pods, strict=True)
    return any(there == Pod.GHOST and level != REMOVED for there, level in pairs)


def _sees_the_parting(state: State, process: Process, write: Write) -> bool:
    if write == LETS_GO:
        return all(other.write is None for other in state.processes)
    return state.reservation.there != There.GONE or bool(process.fresh)


def describe(write: Write) -> str:
    """A write as a trace shows it."""
    if write.kind == "list":
        holders, deallocates, groups = write.values
        names = [f"workload/{number}" for number in range(2) if holders & 1 << number]
        names += [f"group/{number}" for number in range(4) if groups & 1 << number]
        names += [
            f"{'pod' if entry == Entry.POD else 'tombstone'}/p{pod}"
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
    return "takes the claim's finalizer"


def _written(claim: Claim, write: Write) -> Claim:
    if write.kind == "claim-finalizer":
        return claim._replace(finalizer=0)
    holders, deallocates, groups = write.values
    allocated = 0 if deallocates else claim.allocated
    return claim._replace(
        holders=holders, groups=groups, entries=write.columns, allocated=allocated
    )


def _told(reservation: Reservation, write: Write) -> Reservation:
    if write.kind == "finalizer":
        return reservation._replace(finalizer=write.values[0])
    known, recorded, idle, step, named = write.values
    return reservation._replace(
        known=known, recorded=recorded, idle=idle, step=step, named=named, ghosts=write.columns
    )


def _noted(state: State, process: Process, write: Write) -> Process:
    """Nothing is decided again before the caches show what was written."""
    if write.kind in CLAIM_WRITES:
        return see_claim(process, state.claim)
    return see_reservation(process, state.reservation)


def _idled(state: State) -> State:
    def passed(reservation: Reservation) -> Reservation:
        return reservation._replace(idle=2) if reservation.idle == 1 else reservation

    processes = tuple(
        process._replace(reservation=passed(process.reservation)) for process in state.processes
    )
    return state._replace(reservation=passed(state.reservation), processes=processes)
