"""The Events for a change of a reservation's conditions, and the objects that they are about."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace

from claimctl.controller.keys import WorkloadKey
from claimctl.kube.errors import BadRequest, Forbidden, Invalid
from claimctl.kube.events import EventRecorder
from claimctl.reservation.annotation import Problem
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.status.conditions import PROBLEMS
from claimctl.text import counted
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.coordination import ObjectReference
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus
from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, RESOURCECLAIMS, WORKLOADS
from claimctl.wire.workloads import Workload

WARNINGS = (PROBLEMS - {Reason.WORKLOAD_RECREATED, Reason.DEVICE_TAINTED}) | {
    Reason.NO_SCHEDULING_GROUP,
    Reason.POD_TEMPLATE_IMMUTABLE,
    Reason.TEMPLATE_INJECTION_OFF,
    Reason.CLAIM_NOT_IN_POD_GROUP,
    Reason.TOO_MANY_CLAIMS_FOR_POD_GROUP,
    Reason.MORE_PODS_THAN_PLACES,
    Reason.SCHEDULER_IGNORES_GROUPS,
    Reason.KUBELETS_REFUSE,
    Reason.OLD_KUBELETS,
    Reason.PODS_PINNED,
    Reason.FINISHED_PODS_LEFT,
    Reason.FORCE_DELETED_PODS,
    Reason.UNKNOWN_REFERENCES,
    Reason.NEARLY_FULL,
    Reason.STRANDED_POD,
    Reason.FIGHTING_WRITER,
    Reason.FORBIDDEN,
    Reason.INVALID,
    Reason.INVALID_ANNOTATION,
    Reason.STICKY_NOT_IN_FORCE,
    Reason.LIMIT_EXCEEDED,
}
"""The reasons of Warning Events. All other reasons are Normal."""

LIMITS = re.compile(
    r"ValidatingAdmissionPolicy 'claimctl-limits' .* denied request: (.+)|(exceeded quota: .+)"
)
"""How the API server words the refusals of the component limits, and of a ResourceQuota."""
MOST_PODS = 3
"""Up to so many pods get an Event of their own; more share that of their workload."""
_RELEASE = "Release"
_ACTIONS: dict[str, str] = {
    ConditionType.RESERVED: "Reserve",
    ConditionType.CONSISTENT: "Repair",
    ConditionType.RELEASED: _RELEASE,
    ConditionType.READY: "Reconcile",
}


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event to record."""

    type: str
    reason: str
    note: str
    action: str


def announcements(
    old: ClaimReservationStatus, new: ClaimReservationStatus
) -> tuple[Announcement, ...]:
    """The Events for a reservation's status that changes from ``old`` to ``new``.

    A user must know about problems, and about holds and releases that are complete. Everything in
    between is in the conditions. There is one Event for each reason, even if several conditions
    have it. ``Ready`` is a summary of the others, so it gets an Event only if the API server
    refuses what claimctl has to do.
    """
    before = {condition.type: (condition.status, condition.reason) for condition in old.conditions}
    by_reason: dict[str, Announcement] = {}
    for condition in new.conditions:
        was = before.get(condition.type, ("", ""))
        if was == (condition.status, condition.reason):
            continue
        warning = condition.reason in WARNINGS
        turned = condition.status == "True" and was[0] != "True"
        begins = condition.type == ConditionType.CONSISTENT and not was[0]
        if warning or (turned and not begins and condition.type != ConditionType.READY):
            by_reason[condition.reason] = Announcement(
                type="Warning" if warning else "Normal",
                reason=condition.reason,
                note=condition.message,
                action=_ACTIONS.get(condition.type, "Reconcile"),
            )
    return tuple(by_reason.values())


def announce(
    events: EventRecorder,
    snapshot: Snapshot,
    reservation: ClaimReservation,
    status: ClaimReservationStatus,
) -> None:
    """Record the Events of a reservation's new status on the objects whose users they concern."""
    held = next(known for known in snapshot.reservations if known.name == reservation.metadata.name)
    for announcement in announcements(reservation.status, status):
        about = _reference(
            CLAIMRESERVATIONS.api_version, CLAIMRESERVATIONS.kind, held.reservation.metadata
        )
        subjects = _subjects(announcement, held, snapshot.claim)
        note = f"ClaimReservation {held.name}: {announcement.note}"
        if announcement.reason == Reason.PODS_PINNED:
            waiting = counted(len(snapshot.consumers.stuck), "pod waits", "pods wait")
            command = f"claimctl release {snapshot.name} -n {snapshot.namespace}"
            note += f"; {waiting}; give the devices up: {command}"
            subjects += _pinned_pods(snapshot)
        for subject in subjects:
            events.record(subject, related=about, **asdict(replace(announcement, note=note)))
        if announcement.type == "Warning" or not subjects:
            events.record(about, **asdict(announcement))


def _subjects(
    announcement: Announcement, held: Held, claim: ResourceClaim | None
) -> tuple[ObjectReference, ...]:
    """The objects that get the Event; none means the reservation, whose conditions say the same.

    A problem goes to the claim and the workload, a hold to the workload. The workload gets no
    Event about a finished release, because it has ended or is being deleted. If the reservation is
    being deleted, too, the claim gets that Event.
    """
    version, kind = RESOURCECLAIMS.api_version, RESOURCECLAIMS.kind
    of_claim = (_reference(version, kind, claim.metadata),) if claim is not None else ()
    of_workload = (_workload(held),) if held.workload.exists else ()
    if announcement.type == "Warning":
        return of_claim + of_workload
    if announcement.action == _RELEASE:
        return of_claim if held.reservation.metadata.deleting else ()
    return of_workload


def _pinned_pods(snapshot: Snapshot) -> tuple[ObjectReference, ...]:
    """The pods that wait for the claim in vain; none if there are many: then the Event of their
    workload names their number."""
    stuck = sorted(snapshot.consumers.stuck)
    if len(stuck) > MOST_PODS:
        return ()
    metas = (snapshot.consumers.pending[uid].metadata for uid in stuck)
    return tuple(_reference(PODS.api_version, PODS.kind, meta) for meta in metas)


def _workload(held: Held) -> ObjectReference:
    """The reference to the workload of a reservation. The workload must exist."""
    ref = held.reservation.spec.workload_ref
    return ObjectReference(
        api_version=held.api_version or WORKLOADS[ref.api_group, ref.kind].api_version,
        kind=ref.kind,
        namespace=held.reservation.metadata.namespace,
        name=ref.name,
        uid=held.workload.uid,
    )


def warn(
    events: EventRecorder, key: WorkloadKey, workload: Workload, problem: Problem, action: str
) -> None:
    """Record a Warning about a workload."""
    reason, note = problem.reason, problem.note
    subject = _reference(version_of(key, workload), key.kind, workload.metadata)
    events.record(subject, type="Warning", reason=reason, note=note, action=action)


def version_of(key: WorkloadKey, workload: Workload) -> str:
    """The apiVersion of the workload's kind."""
    known = WORKLOADS.get((key.api_group, key.kind))
    return known.api_version if known is not None else workload.api_version


def _reference(api_version: str, kind: str, meta: ObjectMeta) -> ObjectReference:
    return ObjectReference(
        api_version=api_version, kind=kind, namespace=meta.namespace, name=meta.name, uid=meta.uid
    )


def refusal(error: Forbidden | Invalid | BadRequest) -> Problem:
    """What to tell the user whose annotation asks for a write that the API server refuses."""
    if isinstance(error, BadRequest) and error.unknown_fields:
        command = "claimctl install --component crds"
        note = f"the CustomResourceDefinition is too old: `{command}` replaces it ({error})"
        return Problem(Reason.INVALID, note)
    if limit := LIMITS.search(error.message):
        note = f"the annotation asks for more than is allowed: {limit[1] or limit[2]}"
        return Problem(Reason.LIMIT_EXCEEDED, note)
    forbidden = isinstance(error, Forbidden)
    return Problem(Reason.FORBIDDEN if forbidden else Reason.INVALID_ANNOTATION, str(error))
