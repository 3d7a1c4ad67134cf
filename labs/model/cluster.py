"""Everybody but claimctl: scheduler, KCM, kubelet, workload controller, user.

Each gives the worlds that its next step may lead to. A step that is fair is taken some time if it
stays possible; the others may happen or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from labs.model.dialects import OTHER_NODE, ModelDialect, finds_no_node, list_pod
from labs.model.server import (
    Bounds,
    drop_views,
    idled,
    write_claim,
    write_group,
    write_reservation,
)
from labs.model.state import (
    ALIVE,
    LISTED,
    ON_NODE,
    OVER,
    WAITING,
    Claim,
    Devices,
    ListEntry,
    ModelPhase,
    ModelPod,
    ModelProcess,
    News,
    Reservation,
    There,
    Workload,
    World,
    put,
)


class ModelStep(NamedTuple):
    who: str
    what: str
    world: World
    fair: bool = True
    broken: str = ""
    """Which promise the step breaks."""
    process: ModelProcess | None = None
    """What becomes of the process of claimctl that takes it."""


class Cluster:
    def __init__(self, dialect: ModelDialect, bounds: Bounds) -> None:
        self._dialect = dialect
        self._bounds = bounds

    def steps(self, world: World) -> Iterator[ModelStep]:
        yield from self._scheduler(world)
        yield from self._kcm(world)
        yield from self._nodes(world)
        yield from self._workload(world)
        if self._dialect.groups:
            yield from self._group(world)
        if world.left.actions:
            yield from self._user(world)
        if world.reservation.idle == 1:
            yield ModelStep("time", "the idle timeout passes", idled(world))

    def _write(self, world: World, claim: Claim) -> World:
        return write_claim(world, claim, self._dialect, self._bounds)

    # scheduler

    def _scheduler(self, world: World) -> Iterator[ModelStep]:
        for pod, there in enumerate(world.pods):
            if world.cleared[pod] >= 0:
                if world.left.actions and "restart scheduler" in self._bounds.kinds:
                    yield self._forget(world, pod)
                yield self._bind(world, pod) if there in WAITING else self._undo(world, pod)
                if there in WAITING and world.left.actions and "fail" in self._bounds.kinds:
                    yield self._fail(world, pod)
            elif there in WAITING and finds_no_node(world, pod, self._dialect):
                yield from self._fit_nowhere(world, pod)
            elif there in WAITING and self._knows_group_of(world, pod):
                yield from self._plan(world, pod)
        if any(there in WAITING for there in world.pods):
            yield from self._strip(world)

    def _knows_group_of(self, world: World, pod: int) -> bool:
        alone = not self._dialect.groups or self._dialect.is_other(world.pods, pod)
        return alone or world.group_seen >= 0

    def _plan(self, world: World, pod: int) -> Iterator[ModelStep]:
        if (
            world.left.actions
            and "refuse" in self._bounds.kinds
            and world.pods[pod] != ModelPod.STUCK
        ):
            left = world.left._replace(actions=world.left.actions - 1)
            yield self._refuse(world._replace(left=left), pod, "for now", fair=False)
        if self._bounds.nominates and world.pods[pod] == ModelPod.STUCK:
            world = world._replace(pods=put(world.pods, pod, ModelPod.NOMINATED))
        age = world.free[pod]
        if age >= 0:
            seen = drop_views(world, age)
            how = "sees a claim that it may use" if age == 0 else f"on a view {age} versions old"
            cleared = seen._replace(cleared=put(seen.cleared, pod, age))
            yield ModelStep("scheduler", f"plans p{pod}: {how}", cleared)
        if age != 0 and world.claim.there == There.YES:
            yield self._reserve(drop_views(world, 0), pod)
        if (
            self._bounds.mixed_schedulers
            and age == 0
            and world.claim.entries[pod] == ListEntry.NONE
        ):
            yield self._reserve_as_of_old(drop_views(world, 0), pod)

    def _reserve(self, world: World, pod: int) -> ModelStep:
        claim = world.claim
        if not claim.allocated and not claim.finalizer:
            protected = self._write(world._replace(ours=0), claim._replace(finalizer=1))
            return ModelStep("scheduler", "protects the claim by its finalizer", protected)
        what = "reserves" if claim.allocated else "allocates"
        ours = world.ours if claim.allocated else 0
        closed = world.devices == Devices.CLOSED
        place = OTHER_NODE if closed else 1 + self._dialect.is_other(world.pods, pod)
        place = claim.allocated or place
        claim = self._dialect.reserve(claim, pod, world.group_seen)._replace(allocated=place)
        devices = world.devices if world.claim.allocated or closed else Devices.FINE
        world = self._write(world._replace(ours=ours, devices=devices), claim)
        world = world._replace(cleared=put(world.cleared, pod, 0))
        return ModelStep("scheduler", f"{what} the claim for p{pod}", world)

    def _fit_nowhere(self, world: World, pod: int) -> Iterator[ModelStep]:
        if world.devices == Devices.CLOSED:
            if world.pods[pod] == ModelPod.PENDING:
                yield self._refuse(world, pod, "but a closed one", ModelPod.REFUSED)
        elif world.pods[pod] != ModelPod.STUCK:
            yield self._refuse(world, pod, "with the claim's devices")
        if self._bounds.post_filter:
            yield from self._give_up(world, pod)

    def _refuse(
        self, world: World, pod: int, why: str, to: ModelPod = ModelPod.STUCK, *, fair: bool = True
    ) -> ModelStep:
        refused = world._replace(pods=put(world.pods, pod, to))
        return ModelStep("scheduler", f"finds no node for p{pod} {why}", refused, fair)

    def _strip(self, world: World) -> Iterator[ModelStep]:
        """PostFilter: a group none of whose pods is scheduled does not hold by itself."""
        if not self._dialect.groups:
            return
        claim = world.claim
        alone = claim.groups and not claim.holders and not any(claim.entries)
        scheduled = any(there in (*ON_NODE, *OVER) for there in world.pods)
        if alone and claim.usable and not scheduled and world.group_seen >= 0:
            stripped = self._write(world, claim._replace(groups=0))
            stripped = stripped._replace(stripped=1)
            yield ModelStep("scheduler", "(PostFilter) takes the group out", stripped, fair=False)

    def _give_up(self, world: World, pod: int) -> Iterator[ModelStep]:
        """PostFilter: a claim is deallocated that lists nobody else than the pod at hand."""
        left = world.claim._replace(entries=put(world.claim.entries, pod, ListEntry.NONE))
        if world.claim.usable and left.empty:
            freed = self._write(world._replace(ours=0), left._replace(allocated=0))
            yield ModelStep("scheduler", "(PostFilter) deallocates", drop_views(freed, 0))

    def _reserve_as_of_old(self, world: World, pod: int) -> ModelStep:
        world = self._write(world, list_pod(world.claim, pod))
        world = world._replace(cleared=put(world.cleared, pod, 0))
        return ModelStep("scheduler", f"(without the feature) lists p{pod}", world, fair=False)

    def _bind(self, world: World, pod: int) -> ModelStep:
        broken = "" if world.claim.allocated else f"p{pod} is bound on a claim without allocation"
        world = world._replace(
            pods=put(world.pods, pod, ModelPod.BOUND), cleared=put(world.cleared, pod, -1)
        )
        return ModelStep("scheduler", f"binds p{pod}", world, broken=broken)

    def _forget(self, world: World, pod: int) -> ModelStep:
        left = world.left._replace(actions=world.left.actions - 1)
        world = world._replace(cleared=put(world.cleared, pod, -1), left=left)
        return ModelStep("scheduler", f"is started anew and forgets p{pod}", world, fair=False)

    def _undo(self, world: World, pod: int) -> ModelStep:
        """The pod is gone: its entry is taken out by UID, whatever the version."""
        world = world._replace(cleared=put(world.cleared, pod, -1))
        if world.claim.entries[pod] in LISTED:
            entries = put(world.claim.entries, pod, ListEntry.NONE)
            world = self._write(world, world.claim._replace(entries=entries))
        return ModelStep("scheduler", f"gives p{pod} up, which is gone", world)

    def _fail(self, world: World, pod: int) -> ModelStep:
        """A plugin fails behind Reserve: Unreserve takes the pod's entry out, and the pod lives."""
        left = world.left._replace(actions=world.left.actions - 1)
        failed = self._undo(world._replace(left=left), pod)
        return ModelStep(
            "scheduler", f"fails to bind p{pod} and takes its entry out", failed.world, False
        )

    # KCM

    def _kcm(self, world: World) -> Iterator[ModelStep]:
        claim = world.claim
        if claim.there == There.GONE:
            return
        yield from self._clean(world)
        if world.left.actions and "late KCM" in self._bounds.kinds and claim.holders:
            yield from self._clean_late(world)
        if not claim.usable or self._dialect.shared:
            return
        if lacks_group(world, self._dialect):
            listed = self._write(world, claim._replace(groups=1 << world.group_seen))
            yield ModelStep("KCM", "puts the group back for its pods", listed)
        for pod in _unlisted(world, self._dialect, grouped=False):
            yield ModelStep("KCM", f"puts p{pod} back", self._write(world, list_pod(claim, pod)))

    def _clean(self, world: World) -> Iterator[ModelStep]:
        claim = world.claim
        unknown = claim.holders or ListEntry.TOMBSTONE in claim.entries
        if unknown and not self._dialect.kcm_keeps_unknown:
            return
        stays = tuple(
            ListEntry.NONE if entry in LISTED and there not in ALIVE else entry
            for entry, there in zip(claim.entries, world.pods, strict=True)
        )
        group = world.group
        present = 0 if group.there == There.GONE else 1 << group.incarnation
        cleaned = claim._replace(entries=stays, groups=claim.groups & present)
        emptied = cleaned != claim or claim.there == There.DELETING
        if emptied and cleaned.empty and claim.finalizer:
            cleaned = cleaned._replace(allocated=0, finalizer=0)
            after = self._write(world._replace(ours=0), cleaned)
            yield ModelStep("KCM", "takes the last entries out and deallocates", after)
        elif cleaned != claim:
            what = "dead pods" if cleaned.groups == claim.groups else "a group that is gone"
            yield ModelStep("KCM", f"takes {what} out of the list", self._write(world, cleaned))

    def _clean_late(self, world: World) -> Iterator[ModelStep]:
        """KCM's cache does not show a pod yet: it takes the pod's entry out."""
        left = world.left._replace(actions=world.left.actions - 1)
        for pod, entry in enumerate(world.claim.entries):
            if entry in LISTED and world.pods[pod] in WAITING:
                entries = put(world.claim.entries, pod, ListEntry.NONE)
                after = self._write(
                    world._replace(left=left), world.claim._replace(entries=entries)
                )
                yield ModelStep(
                    "KCM", f"takes p{pod} out, which its cache lacks", after, fair=False
                )

    # group

    def _group(self, world: World) -> Iterator[ModelStep]:
        group = world.group
        there = -1 if group.there == There.GONE else group.incarnation
        if there != world.group_seen:
            seen = world._replace(group_seen=there)
            yield ModelStep("scheduler", "is shown the group", seen)
        owned = (
            world.workload.phase != ModelPhase.ABSENT and world.workload.incarnation == group.owner
        )
        if group.there == There.YES and not owned:
            gone = write_group(world, group._replace(there=There.DELETING))
            yield ModelStep("GC", "deletes the group, whose owner is gone", gone)
        used = any(there in ALIVE for there in world.pods)
        if group.there == There.DELETING and group.protected and not used:
            after = write_group(world, group._replace(protected=0))
            yield ModelStep("KCM", "finds no pod of the group and lets it go", after)

    # nodes

    def _nodes(self, world: World) -> Iterator[ModelStep]:
        """A pod that nobody wants has to stop; another one may. Objects of finished pods go."""
        over = world.workload.phase != ModelPhase.ACTIVE
        kept = world.workload.phase in (ModelPhase.ACTIVE, ModelPhase.ENDED)
        for pod, there in enumerate(world.pods):
            unwanted = over and not self._dialect.is_other(world.pods, pod)
            if there == ModelPod.GHOST:
                yield self._moved(world, pod, ModelPod.EXPIRED, "time", "is past its grace")
            elif there in (ModelPod.LEAVING, ModelPod.ENDED) or (
                unwanted and self._deletes(world, there)
            ):
                yield self._deleted(world, pod, fair=over)
            elif there == ModelPod.BOUND and world.devices == Devices.TAINTED:
                yield self._moved(world, pod, ModelPod.QUIET, "KCM", "is evicted")
            elif there == ModelPod.QUIET and world.devices == Devices.TAINTED and not unwanted:
                yield from self._replaced(world, pod)
            elif not unwanted and not self._bounds.finish:
                continue
            elif there == ModelPod.BOUND:
                yield self._moved(world, pod, ModelPod.DONE, "kubelet", "finishes", fair=unwanted)
            elif there == ModelPod.DONE:
                yield self._moved(world, pod, ModelPod.QUIET, "server", "is deleted", fair=not kept)
            elif there in WAITING and unwanted:
                yield self._moved(world, pod, ModelPod.QUIET, "workload", "is deleted, never bound")

    def _deletes(self, world: World, there: int) -> bool:
        """Whether the workload, or garbage collection, deletes a pod that runs."""
        scaled = world.workload.phase in (ModelPhase.IDLE, ModelPhase.ABSENT)
        return self._bounds.graceful and scaled and there == ModelPod.BOUND

    def _deleted(self, world: World, pod: int, *, fair: bool) -> ModelStep:
        """The pod is deleted; it ends when it likes, if a workload is there; its object goes."""
        if world.pods[pod] == ModelPod.LEAVING:
            return self._moved(world, pod, ModelPod.ENDED, "kubelet", "ends", fair=fair)
        if world.pods[pod] == ModelPod.ENDED:
            return self._moved(world, pod, ModelPod.QUIET, "server", "is gone")
        return self._moved(world, pod, ModelPod.LEAVING, "workload", "is being deleted")

    def _moved(
        self, world: World, pod: int, to: ModelPod, who: str, what: str, *, fair: bool = True
    ) -> ModelStep:
        return ModelStep(who, f"p{pod} {what}", world._replace(pods=put(world.pods, pod, to)), fair)

    def _replaced(self, world: World, pod: int) -> Iterator[ModelStep]:
        """The next pod takes the number: so that evictions without end are a circle."""
        if world.claim.entries[pod] == ListEntry.NONE and world.cleared[pod] < 0:
            anew = self._moved(world, pod, ModelPod.NONE, "time", "is forgotten")
            shared = self._dialect.frees(world.claim, pod)
            free = put(world.free, pod, world.free[pod] if shared else -1)
            yield anew._replace(world=anew.world._replace(free=free, news=News.ANEW))

    # workload

    def _workload(self, world: World) -> Iterator[ModelStep]:
        own = world.pods[: len(world.pods) - self._dialect.others]
        if ModelPod.NONE not in own or not (
            world.late or world.workload.phase == ModelPhase.ACTIVE
        ):
            return
        if self._bounds.one_by_one and any(there in ALIVE for there in own):
            return
        pod = own.index(ModelPod.NONE)
        made = world._replace(pods=put(world.pods, pod, ModelPod.PENDING))
        if world.group.there == There.GONE and self._bounds.group_end_seen:
            made = made._replace(group_seen=-1)
        if world.late:
            late = " although it is not wanted any more"
            yield ModelStep("workload", f"makes p{pod}{late}", made._replace(late=0), fair=False)
            yield ModelStep("workload", "has seen that no pod is wanted", world._replace(late=0))
        else:
            yield ModelStep("workload", f"makes p{pod}", made)

    # user

    def _user(self, world: World) -> Iterator[ModelStep]:
        for kind, what, after in self._actions(world):
            if kind in self._bounds.kinds:
                left = after.left._replace(actions=after.left.actions - 1)
                yield ModelStep("user", what, after._replace(left=left), fair=False)

    def _actions(self, world: World) -> Iterator[tuple[str, str, World]]:
        yield from self._on_workload(world)
        yield from self._on_pods(world)
        shared = not world.claim.empty
        fenced = world.claim.allocated and not shared and self._bounds.fence_left_alone
        if world.claim.there == There.YES and not fenced:
            deleted = world.claim._replace(there=There.DELETING)
            yield "delete claim", "deletes the claim", self._write(world, deleted)
        if world.reservation.there == There.YES and world.reservation.finalizer:
            deleting = world.reservation._replace(there=There.DELETING)
            withdrawn = write_reservation(world, deleting)
            yield "withdraw", "deletes the reservation", withdrawn
            if world.claim.allocated and not world.reservation.asked:
                asked = world.reservation._replace(asked=1)
                yield "ask", "asks to give the devices up", write_reservation(world, asked)
        if world.reservation.there == There.GONE and world.claim.there == There.YES:
            anew = Reservation(There.YES, 0, 0, 0, 0, 0, (0,) * len(world.pods))
            yield "reserve", "makes a reservation", write_reservation(world, anew)
        if world.claim.allocated and world.devices == Devices.FINE:
            yield "cordon", "closes the node to pods", world._replace(devices=Devices.AWAY)
            yield "taint", "taints the devices", world._replace(devices=Devices.TAINTED)
        yield from self._on_node(world)
        if world.group.there == There.YES:
            deleting_group = world.group._replace(there=There.DELETING)
            yield "delete group", "deletes the group", write_group(world, deleting_group)

    def _on_node(self, world: World) -> Iterator[tuple[str, str, World]]:
        if world.claim.allocated and world.devices == Devices.FINE:
            yield "close", "cordons the node", world._replace(devices=Devices.CLOSED)
        if world.devices == Devices.CLOSED:
            yield "open", "opens the node again", world._replace(devices=Devices.FINE)

    def _on_pods(self, world: World) -> Iterator[tuple[str, str, World]]:
        for pod, there in enumerate(world.pods):
            if there == ModelPod.NONE and self._dialect.is_other(world.pods, pod):
                yield (
                    "other",
                    f"makes p{pod} for another node",
                    _with_pod(world, pod, ModelPod.PENDING),
                )
            if there in ALIVE:
                if there != ModelPod.LEAVING:
                    to = ModelPod.LEAVING if there == ModelPod.BOUND else ModelPod.QUIET
                    yield "delete pod", f"deletes p{pod}", _with_pod(world, pod, to)
                to = ModelPod.GHOST if there in ON_NODE else ModelPod.QUIET
                yield "force", f"force-deletes p{pod}", _with_pod(world, pod, to)

    def _on_workload(self, world: World) -> Iterator[tuple[str, str, World]]:
        phase, incarnation = world.workload
        if phase == ModelPhase.ACTIVE:
            yield "scale", "scales to zero", _with_phase(world, ModelPhase.IDLE)
            yield "end", "sees the workload complete", _with_phase(world, ModelPhase.ENDED)
        if phase == ModelPhase.IDLE:
            yield "scale", "scales up again", _with_phase(world, ModelPhase.ACTIVE)
        if phase != ModelPhase.ABSENT:
            yield "delete", "deletes the workload", _with_phase(world, ModelPhase.ABSENT)
        elif incarnation == 0:
            again = world._replace(workload=Workload(ModelPhase.ACTIVE, 1), late=0)
            yield "recreate", "makes the workload again", again


def _unlisted(world: World, dialect: ModelDialect, *, grouped: bool) -> Iterator[int]:
    """Pods that KCM puts back, finished ones too; one by one, or by their group. It puts back none
    that is being deleted."""
    for pod, there in enumerate(world.pods):
        by_group = dialect.groups and not dialect.is_other(world.pods, pod)
        listed = world.claim.entries[pod] != ListEntry.NONE
        if there in (ModelPod.BOUND, ModelPod.DONE) and by_group == grouped and not listed:
            yield pod


def lacks_group(world: World, dialect: ModelDialect) -> bool:
    """Whether KCM puts the group back; where there is none it writes nothing for its pods."""
    missing = world.claim.usable and not world.claim.groups and world.group_seen >= 0
    return missing and any(True for _ in _unlisted(world, dialect, grouped=True))


def _with_phase(world: World, phase: ModelPhase) -> World:
    late = int(world.workload.phase == ModelPhase.ACTIVE)
    return world._replace(workload=world.workload._replace(phase=phase), late=late)


def _with_pod(world: World, pod: int, to: ModelPod) -> World:
    return world._replace(pods=put(world.pods, pod, to))
