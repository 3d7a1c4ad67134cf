"""From what a process holds to the snapshot that ``decide`` gets, and back from its write."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache
from math import inf

from msgspec.structs import replace

from claimctl.reservation.facts.decision import (
    ClearReleaseRequest,
    RemoveClaimFinalizer,
    SetFinalizer,
    WriteList,
    WriteStatus,
)
from claimctl.reservation.facts.decision import Write as RealWrite
from claimctl.reservation.facts.memory import Arrivals, Memory, Openings, SeenGhost
from claimctl.reservation.facts.reasons import Reason, ReleaseStep
from claimctl.reservation.facts.references import is_pod, is_pod_group, is_tombstone
from claimctl.reservation.facts.workloads import WorkloadPhase as RealPhase
from claimctl.reservation.facts.workloads import WorkloadState
from claimctl.wire import pods as wire_pods
from claimctl.wire.claims import (
    AllocationResult,
    Device,
    Reference,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from claimctl.wire.meta import OwnerReference
from claimctl.wire.nodes import Node, Taint
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.reservations import (
    FINALIZER,
    REALLOCATE_ANNOTATION,
    ClaimReservation,
    ClaimReservationStatus,
    ForceDeletedPod,
    ReleaseProgress,
)
from labs.model.dialects import DRIVER, OTHER_NODE, Conditions, ModelDialect
from labs.model.state import (
    EXISTS,
    LISTED,
    ON_NODE,
    WAITING,
    Came,
    Claim,
    Ghost,
    GroupObject,
    ListEntry,
    ModelPhase,
    ModelPod,
    ModelProcess,
    Opening,
    Reservation,
    There,
    Workload,
    Write,
)
from labs.model.views import KNOWN
from tests.support import builders

LONG = 1_000_000.0
"""Seconds after which every wait is over."""
SETTLED = 10.0
"""Seconds after which the settle time is over, and the binding time is not."""
SHORT_OVER = 100.0
"""Seconds after which the binding time is over, and the longer one is not."""
_LONG_AGO = builders.NOW - timedelta(days=2)
_STEPS = ("", ReleaseStep.INTENT, ReleaseStep.FENCED)
_INCARNATIONS = (builders.deployment_ref(uid="uid-0"), builders.deployment_ref(uid="uid-1"))
_GROUPS = tuple(builders.group_ref(uid=f"uid-group-{number}") for number in range(4))
OTHER_CLAIMS = {"fabric": builders.claim(allocated=False)}
"""A claim that pods may name, too, and that is yet to be allocated."""
_FABRIC = wire_pods.PodResourceClaim(name="fabric", resource_claim_name="fabric")
_TAINT = Taint(key="gpu.example.com/broken", effect="NoExecute")
_TAINTED = (
    ResourceSlice(
        spec=ResourceSliceSpec(
            driver=DRIVER,
            pool=ResourcePool(name="node-0", generation=1, resource_slice_count=1),
            devices=(Device(name="gpu-0", taints=(_TAINT,)),),
        )
    ),
)
_ONE_NODE = {"node-0": builders.node()}
_ONE_CLOSED = {"node-0": builders.node(cordoned=True), "node-1": builders.node("node-1")}
_PHASES = {
    ModelPhase.ACTIVE: RealPhase.ACTIVE,
    ModelPhase.IDLE: RealPhase.IDLE,
    ModelPhase.ENDED: RealPhase.ENDED,
}


def name_of(pod: int) -> str:
    return f"p{pod}"


_NUMBERS = {f"uid-{name_of(pod)}": pod for pod in range(16)}


@lru_cache(None)
def pods_of(levels: tuple[int, ...], dialect: ModelDialect) -> tuple[wire_pods.Pod, ...]:
    """The pods that are there, by what a cache or a LIST shows."""
    return tuple(
        _pod(name_of(pod), level, dialect, other=dialect.is_other(levels, pod))
        for pod, level in enumerate(levels)
        if level in EXISTS
    )


def group_name(dialect: ModelDialect) -> str:
    """The PodGroup that pods and the workload's template name, or ''."""
    return "train" if dialect.groups else ""


def _pod(name: str, level: int, dialect: ModelDialect, *, other: bool) -> wire_pods.Pod:
    group = "" if other else group_name(dialect)
    if level in WAITING:
        since = {ModelPod.PENDING: None, ModelPod.REFUSED: builders.NOW}.get(
            ModelPod(level), _LONG_AGO
        )
        made = builders.pending(name, group=group, unschedulable_at=since)
        if level == ModelPod.NOMINATED:
            made = replace(made, status=replace(made.status, nominated_node_name="node-0"))
        if dialect.conditions is Conditions.OTHER:
            names = (*made.spec.resource_claims, _FABRIC)
            made = replace(made, spec=replace(made.spec, resource_claims=names))
        return made if other else builders.owned(made)
    build = builders.running if level in ON_NODE else builders.finished
    return build(name, group=group, deleting=level in (ModelPod.LEAVING, ModelPod.ENDED))


@lru_cache(None)
def claim_of(claim: Claim, dialect: ModelDialect) -> ResourceClaim | None:
    if claim.there == There.GONE:
        return None
    made = builders.claim(
        *_references(claim),
        allocated=bool(claim.allocated),
        shared=dialect.shared,
        created_for=_INCARNATIONS[0] if dialect.shared else None,
        deleting=claim.there == There.DELETING,
        finalizer=bool(claim.finalizer),
    )
    if dialect.conditions is Conditions.OWN and (allocation := made.status.allocation):
        results = [
            replace(result, binding_conditions=("gpu.example.com/ready",))
            for result in allocation.devices.results or ()
        ]
        devices = replace(allocation.devices, results=tuple(results))
        allocated = replace(allocation, devices=devices)
        made = replace(made, status=replace(made.status, allocation=allocated))
    if claim.allocated == OTHER_NODE:
        moved = replace(made.status, allocation=_allocated_anew(dialect))
        made = replace(made, status=moved)
    if dialect.shared:
        return made
    ours = [ref.uid for ref in _holders(claim.holders)]
    ours += [
        f"uid-{name_of(pod)}" for pod, entry in enumerate(claim.entries) if entry == ListEntry.AHEAD
    ]
    return builders.written_by_claimctl(made, ours)


def _allocated_anew(dialect: ModelDialect) -> AllocationResult:
    return builders.allocation(shared=dialect.shared, node="node-1")


def _references(claim: Claim) -> list[Reference]:
    pod_ref = builders.pod_ref
    makers = {ListEntry.POD: pod_ref, ListEntry.AHEAD: pod_ref, ListEntry.TOMBSTONE: builders.tomb}
    pods = [
        makers[ListEntry(entry)](name_of(pod)) for pod, entry in enumerate(claim.entries) if entry
    ]
    return pods + _holders(claim.holders) + _groups(claim.groups)


def _groups(bits: int) -> list[Reference]:
    return [ref for number, ref in enumerate(_GROUPS) if bits & 1 << number]


def _holders(bits: int) -> list[Reference]:
    return [ref for number, ref in enumerate(_INCARNATIONS) if bits & 1 << number]


@lru_cache(None)
def groups_of(group: GroupObject) -> tuple[PodGroup, ...]:
    """The group as a cache shows it, if it is there."""
    if group.there == There.GONE:
        return ()
    kept = (FINALIZER,) if group.guarded else ()
    return (
        builders.pod_group(
            uid=f"uid-group-{group.incarnation}",
            owner=owner_of(group.owner),
            made_by_claimctl=True,
            finalizers=(*kept, "scheduling.k8s.io/podgroup-protection"),
            deleting=group.there == There.DELETING,
        ),
    )


def slices_of(tainted: int) -> tuple[ResourceSlice, ...]:
    """The slices with taints."""
    return _TAINTED if tainted else ()


def nodes_of(closed: int) -> dict[str, Node]:
    """The nodes, by name."""
    return _ONE_CLOSED if closed else _ONE_NODE


def owner_of(incarnation: int) -> OwnerReference:
    uid = f"uid-{incarnation}"
    return OwnerReference(api_version="apps/v1", kind="Deployment", name="train", uid=uid)


@lru_cache(None)
def reservation_of(reservation: Reservation, dialect: ModelDialect) -> ClaimReservation:
    made = builders.reservation(
        deleting=reservation.there == There.DELETING,
        status=_status(reservation, dialect),
        annotations={REALLOCATE_ANNOTATION: "uid-slice"} if reservation.asked else None,
    )
    if reservation.finalizer:
        return made
    return replace(made, metadata=replace(made.metadata, finalizers=()))


def _status(reservation: Reservation, dialect: ModelDialect) -> ClaimReservationStatus:
    recorded = reservation.recorded
    return ClaimReservationStatus(
        dialect=dialect.rules.dialect,
        claim_uid="uid-slice" if reservation.known else "",
        reserved_for=_INCARNATIONS[recorded - 1] if recorded else None,
        allocation_time=_LONG_AGO,
        idle_since=(None, builders.NOW, _LONG_AGO)[reservation.idle],
        force_deleted_pods=tuple(
            _ghost(pod, Ghost.YOUNG) for pod, ghost in enumerate(reservation.ghosts) if ghost
        ),
        release=_release(reservation),
        pod_group_name=group_name(dialect) if reservation.named else "",
    )


def _release(reservation: Reservation) -> ReleaseProgress | None:
    if not reservation.step:
        return None
    return ReleaseProgress(
        step=_STEPS[reservation.step],
        reason=Reason.REALLOCATED if reservation.asked else Reason.WORKLOAD_ENDED,
        since=builders.NOW,
        claim_uid="uid-slice",
    )


def _ghost(pod: int, ghost: int) -> ForceDeletedPod:
    node = "" if ghost in (Ghost.UNSEEN, Ghost.UNSEEN_OLD) else "node-0"
    name = name_of(pod)
    return ForceDeletedPod(uid=f"uid-{name}", name=name, node_name=node, since=builders.NOW)


def ghosts_of(process: ModelProcess) -> tuple[SeenGhost, ...]:
    return tuple(
        SeenGhost(
            _ghost(pod, ghost),
            age=LONG if ghost in (Ghost.OLD, Ghost.UNSEEN_OLD) else 0.0,
            once_recorded=bool(told),
        )
        for pod, (ghost, told) in enumerate(zip(process.ghosts, process.told, strict=True))
        if ghost in KNOWN
    )


def memory_of(process: ModelProcess, dialect: ModelDialect) -> Memory:
    bound_by_now = max(_closed_for(process.opened), SETTLED)
    return Memory(
        version_age=LONG if process.settled else 0.0,
        deleting_age=bound_by_now if process.deleting_settled else 0.0,
        openings=_openings(process, dialect),
        arrivals=_arrivals(process),
        blind_age=0.0 if process.blind else None,
        deallocated=bool(process.deallocated),
        history_complete=process.whole == 1,
        done_pods=frozenset(
            f"uid-{name_of(pod)}"
            for pod, known in enumerate(process.ghosts)
            if known == Ghost.SEEN_DONE
        ),
        dead_age={
            f"uid-{name_of(pod)}": LONG if overdue else 0.0
            for pod, overdue in enumerate(process.overdue)
        },
    )


def _openings(process: ModelProcess, dialect: ModelDialect) -> Openings:
    """What opens the claim to all pods of a group, or of a workload, shows for all of them."""
    opened = process.opened
    entries = {
        f"uid-{name_of(pod)}": _closed_for((seen,))
        for pod, (seen, noted) in enumerate(zip(opened, process.noted, strict=True))
        if noted == 1 or (seen and (not dialect.groups or dialect.is_other(opened, pod)))
    }
    if dialect.shared:
        return Openings(holder_age=_closed_for(opened))
    if process.grouped:
        own = opened[: len(opened) - dialect.others]
        age = _closed_for(own)
        ages = {group.name: age for group in _GROUPS}
        return Openings(group_age=age, group_ages=ages, entry_age=entries)
    if dialect.groups:
        settled = SETTLED if process.settled else 0.0
        return Openings(watched_age=max(_closed_for(opened), settled), entry_age=entries)
    return Openings(entry_age=entries)


def _closed_for(opened: Iterable[int]) -> float:
    """Seconds since all these pods found the claim closed."""
    ages = {Opening.OVER: LONG, Opening.SHORT_OVER: SHORT_OVER}
    return min(ages.get(Opening(opening), 0.0) for opening in opened)


def _arrivals(process: ModelProcess) -> Arrivals:
    came = [(f"uid-{name_of(pod)}", known) for pod, known in enumerate(process.came) if known]
    return Arrivals(
        claim_age=inf,
        pod_age={uid: LONG if known == Came.EARLIER else 0.0 for uid, known in came},
        entry_age={uid: 0.0 for uid, known in came if known == Came.LISTED},
    )


def workload_of(workload: Workload, dialect: ModelDialect) -> WorkloadState:
    """The workload as its object shows it."""
    return WorkloadState(
        _PHASES[ModelPhase(workload.phase)],
        f"uid-{workload.incarnation}",
        wants=1 if workload.phase == ModelPhase.ACTIVE else 0,
        pod_group=group_name(dialect),
        pod_owners=frozenset({"uid-set"}),
    )


def write_of(write: RealWrite, held: Reservation, claim: Claim, dialect: ModelDialect) -> Write:
    """A write of ``decide`` in the model's terms."""
    match write:
        case WriteList():
            new = ListEntry.AHEAD if dialect.ahead else ListEntry.POD
            listed = tuple(entry if entry in LISTED else new for entry in claim.entries)
            holders, groups, entries = _list(write.reserved_for, listed)
            made = Write("list", (holders, int(write.deallocate), groups), entries)
            if not write.present:
                return made
            return made._replace(present=claim.listed, beside=claim.beside)
        case RemoveClaimFinalizer():
            return Write("claim-finalizer", (), ())
        case SetFinalizer():
            return Write("finalizer", (int(write.present),), ())
        case ClearReleaseRequest():
            return Write("request", (), ())
        case WriteStatus():
            return _status_write(write.status, len(held.ghosts))
    raise AssertionError(f"the model has no such write: {write}")


def _list(
    references: Iterable[Reference], pods: tuple[int, ...]
) -> tuple[int, int, tuple[int, ...]]:
    """The list in numbers.

    Args:
        pods: by pod: what an entry for it is, an old or a new one.
    """
    holders, groups, entries = 0, 0, [0] * len(pods)
    for reference in references:
        if is_pod(reference) or is_tombstone(reference):
            number = _NUMBERS[reference.uid]
            entries[number] = pods[number] if is_pod(reference) else ListEntry.TOMBSTONE
        elif is_pod_group(reference):
            groups |= 1 << _GROUPS.index(reference)
        else:
            holders |= 1 << _INCARNATIONS.index(reference)
    return holders, groups, tuple(entries)


def _status_write(status: ClaimReservationStatus, pods: int) -> Write:
    recorded = 0 if status.reserved_for is None else _INCARNATIONS.index(status.reserved_for) + 1
    idle = {None: 0, builders.NOW: 1, _LONG_AGO: 2}[status.idle_since]
    step = _STEPS.index(status.release.step) if status.release else 0
    vanished = {_NUMBERS[ghost.uid] for ghost in status.force_deleted_pods}
    ghosts = tuple(int(pod in vanished) for pod in range(pods))
    known, named = int(bool(status.claim_uid)), int(bool(status.pod_group_name))
    return Write("status", (known, recorded, idle, step, named), ghosts)


def status_values(reservation: Reservation) -> tuple[tuple[int, ...], tuple[int, ...]]:
    held = reservation
    return (held.known, held.recorded, held.idle, held.step, held.named), held.ghosts
