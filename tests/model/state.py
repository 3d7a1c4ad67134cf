"""The model's states: plain tuples of small integers, the same for all that is symmetric.

Versions are not numbered but aged: 0 is the present version, 1 the one before. Pods are columns of
every tuple named after them, and two states that differ by a renaming of pods are one.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple


class There(IntEnum):
    """Whether an object is there."""

    GONE = 0
    YES = 1
    DELETING = 2


class Pod(IntEnum):
    """A pod on the server, and what its node still does."""

    NONE = 0
    PENDING = 1
    BOUND = 2
    DONE = 3
    """Finished: a terminal phase, the containers stopped, the object there."""
    GHOST = 4
    """The object is gone, the containers may be running: its grace is not over."""
    QUIET = 5
    """Gone after it was done, or before it was bound."""
    EXPIRED = 6
    """A ghost whose grace is over."""


EXISTS = (Pod.PENDING, Pod.BOUND, Pod.DONE)
REMOVED = 4
"""How a cache shows a pod that it had and that is gone; lower levels are those of Pod."""


class Ghost(IntEnum):
    """What a process knows of a pod's end."""

    NOTHING = 0
    YOUNG = 1
    """Vanished while it may have been running; its grace is not over for this process."""
    OLD = 2
    SEEN_DONE = 3
    UNSEEN = 4
    """Listed, and this process never saw it."""
    BEFORE = 5
    """Vanished before this process began to look."""


class Entry(IntEnum):
    """A pod's entry in the list."""

    NONE = 0
    POD = 1
    TOMBSTONE = 2


class Life(IntEnum):
    ABSENT = 0
    ACTIVE = 1
    IDLE = 2
    ENDED = 3


class Claim(NamedTuple):
    there: int
    finalizer: int
    allocated: int
    holders: int
    """Workload references in the list, a bit for each incarnation."""
    entries: tuple[int, ...]
    groups: int = 0
    """PodGroup references in the list, a bit for each incarnation of the name."""

    @property
    def empty(self) -> bool:
        return not self.holders and not self.groups and not any(self.entries)

    @property
    def usable(self) -> bool:
        return bool(self.there == There.YES and self.allocated)


class Reservation(NamedTuple):
    there: int
    finalizer: int
    known: int
    """Whether the status names this claim."""
    recorded: int
    """``status.reservedFor``: 0 or one more than the incarnation."""
    idle: int
    """``status.idleSince``: 0 unset, 1 lately, 2 longer ago than the timeout."""
    step: int
    """``status.release``: 0 none, 1 Intent, 2 Fenced."""
    ghosts: tuple[int, ...]
    named: int = 0
    """Whether the status names the PodGroup that shares the claim."""


class Group(NamedTuple):
    """The object under the PodGroup's name: the latest incarnation, there or gone."""

    there: int = There.GONE
    incarnation: int = -1
    owner: int = 0
    """The workload's incarnation it was made for."""
    guarded: int = 0
    """claimctl's own finalizer."""
    protected: int = 0
    """The finalizer that stays until the last pod has ended."""


NO_GROUP = Group()


class Workload(NamedTuple):
    life: int
    incarnation: int


class Write(NamedTuple):
    """What a request says, under the version it was decided on."""

    kind: str
    """list, claim-finalizer, status, finalizer, group."""
    values: tuple[int, ...]
    columns: tuple[int, ...]


class Process(NamedTuple):
    """One claimctl: its caches, its memory and the write it is about to make."""

    claim: Claim
    age: int
    reservation: Reservation
    fresh: int
    """Whether the cached reservation is the present one."""
    workload: Workload
    pods: tuple[int, ...]
    ghosts: tuple[int, ...]
    overdue: tuple[int, ...]
    """Listed pods known to be dead for so long that KCM should have removed them."""
    settled: int
    """Whether the settle time has passed since the cached version was first seen."""
    deleting_settled: int
    blind: int
    """Whether pods may have vanished before this process began to look."""
    synced: int
    """Whether the pods were listed since the start."""
    group: Group
    quiet: int
    """Whether the settle time has passed since this process last saw the group's name in use."""
    write: Write | None


class Left(NamedTuple):
    """What may still go wrong."""

    crashes: int
    actions: int
    lost: int
    """Answers that never arrive although the write was accepted."""


class State(NamedTuple):
    claim: Claim
    free: tuple[int, ...]
    """Per pod: age of the youngest version still in the scheduler's cache on which it binds the
    pod without writing to the claim; -1 where there is none."""
    cleared: tuple[int, ...]
    """Per pod: age of the version on which the scheduler decided to bind it, or -1."""
    reservation: Reservation
    workload: Workload
    group: Group
    group_seen: int
    """The incarnation of the group that the cache of scheduler and KCM shows, or -1."""
    late: int
    """Whether the workload's controller is about to make a pod that is not wanted any more."""
    pods: tuple[int, ...]
    ours: int
    """Whether it was claimctl who deallocated last."""
    processes: tuple[Process, ...]
    left: Left


def put(columns: tuple[int, ...], pod: int, value: int) -> tuple[int, ...]:
    return (*columns[:pod], value, *columns[pod + 1 :])


def initial(pods: int, processes: int, left: Left) -> State:
    """A claim nobody has used, a workload that wants pods, a reservation nobody has touched."""
    none = (0,) * pods
    claim = Claim(There.YES, 0, 0, 0, none)
    reservation = Reservation(There.YES, 0, 0, 0, 0, 0, none)
    workload = Workload(Life.ACTIVE, 0)
    process = Process(
        claim, 0, reservation, 1, workload, none, none, none, 0, 0, 0, 1, NO_GROUP, 0, None
    )
    no_view = (-1,) * pods
    return State(
        claim,
        no_view,
        no_view,
        reservation,
        workload,
        NO_GROUP,
        -1,
        0,
        none,
        0,
        (process,) * processes,
        left,
    )


def held(state: State, *, groups: bool = False) -> State:
    """The claim is held already, and its first pod runs; it or its group is listed too."""
    rest = (0,) * (len(state.pods) - 1)
    entry = Entry.NONE if groups else Entry.POD
    claim = Claim(There.YES, 1, 1, 1, (entry, *rest), int(groups))
    group = Group(There.YES, 0, 0, 1, 1) if groups else NO_GROUP
    reservation = state.reservation._replace(finalizer=1, known=1, recorded=1, named=int(groups))
    pods = (Pod.BOUND, *rest)
    return state._replace(
        claim=claim,
        reservation=reservation,
        group=group,
        group_seen=group.incarnation,
        pods=pods,
        processes=tuple(
            process._replace(claim=claim, reservation=reservation, pods=pods, group=group)
            for process in state.processes
        ),
    )


def canonical(state: State) -> State:
    """The one of all states alike but for the names of pods and processes."""
    number = len(state.pods)
    if number > 1:
        columns = _columns(state)
        order = sorted(range(number), key=columns.__getitem__)
        if order != list(range(number)):
            state = _renamed(state, order)
    first, *others = state.processes
    if others and any(_rank(other) < _rank(first) for other in others):
        state = state._replace(processes=tuple(sorted(state.processes, key=_rank)))
    return state


def _rank(process: Process) -> tuple[object, ...]:
    return (*process[:-1], process.write or ())


def _columns(state: State) -> list[tuple[int, ...]]:
    rows = [
        state.pods,
        state.cleared,
        state.free,
        state.claim.entries,
        state.reservation.ghosts,
    ]
    for process in state.processes:
        rows += [process.claim.entries, process.reservation.ghosts, process.pods]
        rows += [process.ghosts, process.overdue]
        if process.write is not None and process.write.columns:
            rows.append(process.write.columns)
    return list(zip(*rows, strict=True))


def _renamed(state: State, order: list[int]) -> State:
    def moved(columns: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([columns[pod] for pod in order]) if columns else columns

    def process(old: Process) -> Process:
        write = old.write
        return old._replace(
            claim=old.claim._replace(entries=moved(old.claim.entries)),
            reservation=old.reservation._replace(ghosts=moved(old.reservation.ghosts)),
            pods=moved(old.pods),
            ghosts=moved(old.ghosts),
            overdue=moved(old.overdue),
            write=write and write._replace(columns=moved(write.columns)),
        )

    return state._replace(
        claim=state.claim._replace(entries=moved(state.claim.entries)),
        free=moved(state.free),
        cleared=moved(state.cleared),
        reservation=state.reservation._replace(ghosts=moved(state.reservation.ghosts)),
        pods=moved(state.pods),
        processes=tuple(process(old) for old in state.processes),
    )


def show(pods: Iterable[int]) -> str:
    return " ".join(f"p{number}:{Pod(pod).name.lower()}" for number, pod in enumerate(pods))
