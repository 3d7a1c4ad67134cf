"""The model's states: plain tuples of small integers, the same for all that is symmetric.

A state is a world and the processes of claimctl. Versions are not numbered but aged: 0 is the
present version, 1 the one before. Pods are columns of every tuple named after them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class There(IntEnum):
    """Whether an object is there."""

    GONE = 0
    YES = 1
    DELETING = 2


class ModelPod(IntEnum):
    """A pod on the server, and what its node still does."""

    NONE = 0
    PENDING = 1
    REFUSED = 2
    """Pending, and reported Unschedulable just now: no timeout is over."""
    STUCK = 3
    """Pending, and reported Unschedulable for so long that every timeout is over. It may stay so
    until the pod is bound, also while it is being bound."""
    NOMINATED = 4
    """Reported so, and nominated to a node: it is being bound."""
    BOUND = 5
    LEAVING = 6
    """Bound, and being deleted: the containers may be running for as long as they like."""
    DONE = 7
    """Finished: a terminal phase, the containers stopped, the object there."""
    ENDED = 8
    """The same of a pod that is being deleted: its object goes next."""
    GHOST = 9
    """The object is gone, the containers may be running: its grace is not over."""
    QUIET = 10
    """Gone after it was done, or before it was bound."""
    EXPIRED = 11
    """A ghost whose grace is over."""


WAITING = (ModelPod.PENDING, ModelPod.REFUSED, ModelPod.STUCK, ModelPod.NOMINATED)
ON_NODE = (ModelPod.BOUND, ModelPod.LEAVING)
"""A node runs them, and their objects are there."""
ALIVE = (*WAITING, *ON_NODE)
OVER = (ModelPod.DONE, ModelPod.ENDED)
EXISTS = (*ALIVE, *OVER)
REMOVED = 9
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
    UNSEEN_OLD = 6
    """Listed, never seen by this process, and its grace is over. It may exist all the same."""


class ListEntry(IntEnum):
    """A pod's entry in the list."""

    NONE = 0
    POD = 1
    TOMBSTONE = 2
    AHEAD = 3
    """A pod that claimctl listed, by managedFields."""


LISTED = (ListEntry.POD, ListEntry.AHEAD)


class Opening(IntEnum):
    """What a process knows of schedulers that may have seen the claim open to a pod."""

    OVER = 0
    SEEN = 1
    COMING = 2
    """The watch has yet to bring the version. It brings every one, although ``Process.claim`` may
    jump to the latest."""
    SHORT_OVER = 3
    """The binding time is over, and the longer one is not that counts for some pods."""


class Came(IntEnum):
    """What a process knows of the arrival of a pod, for listing ahead."""

    UNKNOWN = 0
    """A LIST has shown the pod first."""
    NOW = 1
    EARLIER = 2
    LISTED = 3
    """The claim has listed the pod."""


class Devices(IntEnum):
    """What has become of a claim's devices."""

    FINE = 0
    AWAY = 1
    """No pod can use them any more, for whatever reason."""
    TAINTED = 2
    """Pods that use them are evicted (NoExecute), and schedulers bind new ones all the same."""
    CLOSED = 3
    """Their node is cordoned, which claimctl sees. Another node is open, and stays so."""


class ModelPhase(IntEnum):
    ABSENT = 0
    ACTIVE = 1
    IDLE = 2
    ENDED = 3


class Claim(NamedTuple):
    there: int
    finalizer: int
    allocated: int
    """2: where the pods of other owners may run. 3: on the other node, when the first one was
    closed."""
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

    @property
    def listed(self) -> tuple[int, ...]:
        """The entries of pods as the server compares them: it makes no difference who wrote one."""
        return tuple(ListEntry.POD if entry == ListEntry.AHEAD else entry for entry in self.entries)

    @property
    def beside(self) -> tuple[int, int]:
        """The other entries of the list."""
        return self.holders, self.groups


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
    asked: int = 0
    """Whether an annotation asks to give the devices up. 2: claimctl has deallocated the claim
    since."""


class GroupObject(NamedTuple):
    """The object under the PodGroup's name: the latest incarnation, there or gone."""

    there: int = There.GONE
    incarnation: int = -1
    owner: int = 0
    """The workload's incarnation it was made for."""
    guarded: int = 0
    """claimctl's own finalizer."""
    protected: int = 0
    """The finalizer that stays until the last pod has ended."""


NO_GROUP = GroupObject()


class Workload(NamedTuple):
    phase: int
    incarnation: int


class Write(NamedTuple):
    """What a request says, under the version it was decided on."""

    kind: str
    """list, claim-finalizer, status, finalizer, request, group."""
    values: tuple[int, ...]
    columns: tuple[int, ...]
    early: int = 0
    """Whether it was decided on before its process saw that the reservation is being deleted."""
    bound: int = 0
    """Whether a pod was bound on the server when it was decided on."""
    lets_go: int = 0
    """Where holds are late: whether it was decided on to leave a claim that is held to KCM, which
    deallocates with the entries of dead pods."""
    joins: int = 0
    """Where holds are late: whether it was decided on to have a hold join a pod that may start."""
    present: tuple[int, ...] = ()
    """The entries of pods in the list that it was decided on, if the server compares that list in
    place of the version."""
    beside: tuple[int, ...] = ()
    """The other entries of that list: workloads and groups."""


class ModelProcess(NamedTuple):
    """One claimctl: its caches, its memory and the write it is about to make."""

    claim: Claim
    age: int
    reservation: Reservation
    fresh: int
    """Whether the cached reservation is the present one."""
    workload: Workload
    pods: tuple[int, ...]
    ghosts: tuple[int, ...]
    told: tuple[int, ...]
    """Ghosts that this process has seen on record."""
    overdue: tuple[int, ...]
    """Listed pods known to be dead for so long that KCM should have removed them."""
    settled: int
    """Whether the settle time has passed since the cached version was first seen."""
    deleting_settled: int
    blind: int
    """Whether pods may have vanished before this process began to look."""
    synced: int
    """Whether the pods were listed since the start."""
    group: GroupObject
    quiet: int
    """Whether the settle time has passed since this process last saw the group's name in use."""
    write: Write | None
    opened: tuple[int, ...] = ()
    """Per pod: whether the process has seen the claim open to it (the pod is bound without a write
    by a scheduler that saw the same) and the binding time is not over; an ``Opening``."""
    deallocated: int = 0
    """Whether the claim's cached version is the one by which this process deallocated it."""
    withdrawn_settled: int = 0
    """Whether the settle time has passed since the reservation's deletion was first seen."""
    came: tuple[int, ...] = ()
    """Per pod: what is known of its arrival; empty where claimctl lists no pod ahead."""
    noted: tuple[int, ...] = ()
    """Per pod: whether a version of the claim listed it that the watch has brought; 2: the watch
    has yet to bring the version."""
    whole: int = 1
    """Whether the process has seen every version of the claim since before its allocation. 2: it
    has from now on, once its pod cache is as late as that."""
    known: int = 0
    """Whether the process takes the claim's history before its start from a checkpoint."""
    grouped: int = 0
    """Whether a version of the claim listed a PodGroup that the watch has brought."""
    tainted: int = 0
    """Whether the caches show a taint on the claim's devices."""
    closed: int = 0
    """Whether the caches show that the first node is cordoned."""


class Left(NamedTuple):
    """What may still go wrong."""

    crashes: int
    actions: int
    lost: int
    """Answers that never arrive although the write was accepted."""
    unlucky: int = 0
    """Whether any of that has happened to claimctl."""
    gaps: int = 0
    """How often the watches of a process may yet break, so that it has to list again."""


class News(IntEnum):
    """What a step has written: every process is behind from then on. Bits."""

    CLAIM = 1
    RESERVATION = 2
    IDLED = 4
    """Time has passed over ``status.idleSince``, in whatever view of it."""
    ANEW = 8
    """A pod that was evicted has given its number to the one that takes its place."""


class World(NamedTuple):
    """Everything but claimctl's processes."""

    claim: Claim
    free: tuple[int, ...]
    """Per pod: age of the youngest version still in the scheduler's cache on which it binds the
    pod without writing to the claim; -1 where there is none."""
    cleared: tuple[int, ...]
    """Per pod: age of the version on which the scheduler decided to bind it, or -1."""
    reservation: Reservation
    workload: Workload
    group: GroupObject
    group_seen: int
    """The incarnation of the group that the cache of scheduler and KCM shows, or -1."""
    late: int
    """Whether the workload's controller is about to make a pod that is not wanted any more."""
    pods: tuple[int, ...]
    ours: int
    """Whether it was claimctl who deallocated last."""
    left: Left
    devices: int = Devices.FINE
    delisted: tuple[int, ...] = ()
    """Per pod that is there: whether its entry was taken out of the list; empty where claimctl
    lists no pod ahead."""
    stripped: int = 0
    """Whether PostFilter took the group out, and no group was listed since."""
    mark: ModelProcess | None = None
    """What a process would know that lists everything as it was at some version, and that has seen
    nothing since; None if there is no such version."""
    marked: int = 0
    """Whether a leader has noted that version as the checkpoint."""
    backup: World | None = None
    """What a restore of etcd brings back, with the checkpoint of that time."""
    news: int = 0
    """Written by the step that led here; no part of what is remembered."""


def put(columns: tuple[int, ...], pod: int, value: int) -> tuple[int, ...]:
    return (*columns[:pod], value, *columns[pod + 1 :])


def initial(pods: int, left: Left) -> World:
    """A claim nobody has used, a workload that wants pods, a reservation nobody has touched."""
    none, no_view = (0,) * pods, (-1,) * pods
    claim = Claim(There.YES, 0, 0, 0, none)
    reservation = Reservation(There.YES, 0, 0, 0, 0, 0, none)
    workload = Workload(ModelPhase.ACTIVE, 0)
    return World(claim, no_view, no_view, reservation, workload, NO_GROUP, -1, 0, none, 0, left)


def held(world: World, *, groups: bool = False, late: bool = False) -> World:
    """The claim is held already, and its first pod runs; it or its group is listed too. A late hold
    is not listed."""
    rest = (0,) * (len(world.pods) - 1)
    entry = ListEntry.NONE if groups else ListEntry.POD
    group = GroupObject(There.YES, 0, 0, 1, 1) if groups else NO_GROUP
    return world._replace(
        claim=Claim(There.YES, 1, 1, int(not late), (entry, *rest), int(groups)),
        reservation=world.reservation._replace(finalizer=1, known=1, recorded=1, named=int(groups)),
        group=group,
        group_seen=group.incarnation,
        pods=(ModelPod.BOUND, *rest),
    )


def idle(world: World) -> World:
    """The same when the pod has gone."""
    none = (0,) * len(world.pods)
    return world._replace(claim=world.claim._replace(entries=none), pods=none)


def unreserved(world: World) -> World:
    """The same without a reservation, and without its hold."""
    gone = Reservation(There.GONE, 0, 0, 0, 0, 0, (0,) * len(world.pods))
    return world._replace(claim=world.claim._replace(holders=0), reservation=gone)


def watching(world: World) -> ModelProcess:
    """A process that has watched the world from its beginning."""
    none = (0,) * len(world.pods)
    opened = tuple(int(age >= 0) for age in world.free)
    claim, reservation, workload = world.claim, world.reservation, world.workload
    return ModelProcess(
        claim,
        0,
        reservation,
        1,
        workload,
        world.pods,
        none,
        none,
        none,
        0,
        0,
        0,
        1,
        world.group,
        0,
        None,
        opened,
        came=(Came.UNKNOWN,) * len(world.delisted),
        noted=tuple(int(entry in LISTED) for entry in claim.entries),
        grouped=int(bool(claim.groups)),
    )


def renamed(world: World, order: tuple[int, ...]) -> World:
    """The same with other names for the pods: a pod's number becomes its place in ``order``."""
    return world._replace(
        claim=_renamed_claim(world.claim, order),
        free=_moved(world.free, order),
        cleared=_moved(world.cleared, order),
        reservation=_renamed_reservation(world.reservation, order),
        pods=_moved(world.pods, order),
        delisted=_moved(world.delisted, order),
        mark=world.mark and renamed_process(world.mark, order),
        backup=world.backup and renamed(world.backup, order),
    )


def renamed_process(process: ModelProcess, order: tuple[int, ...]) -> ModelProcess:
    write = process.write
    return process._replace(
        claim=_renamed_claim(process.claim, order),
        reservation=_renamed_reservation(process.reservation, order),
        pods=_moved(process.pods, order),
        ghosts=_moved(process.ghosts, order),
        told=_moved(process.told, order),
        overdue=_moved(process.overdue, order),
        opened=_moved(process.opened, order),
        came=_moved(process.came, order),
        noted=_moved(process.noted, order),
        write=write
        and write._replace(
            columns=_moved(write.columns, order), present=_moved(write.present, order)
        ),
    )


def _moved(columns: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([columns[pod] for pod in order]) if columns else columns


def _renamed_claim(claim: Claim, order: tuple[int, ...]) -> Claim:
    return claim._replace(entries=_moved(claim.entries, order))


def _renamed_reservation(reservation: Reservation, order: tuple[int, ...]) -> Reservation:
    return reservation._replace(ghosts=_moved(reservation.ghosts, order))
