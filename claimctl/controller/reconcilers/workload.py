"""The reconciler of annotated workloads: which ClaimReservations they own."""

from __future__ import annotations

import re
from typing import Any

import structlog

from claimctl.controller.caches.chains import Climber
from claimctl.controller.caches.informers import Caches
from claimctl.controller.events import version_of, warn
from claimctl.controller.keys import WorkloadKey
from claimctl.controller.observations.observations import OwnWrites
from claimctl.controller.template_injection import Injector
from claimctl.controller.unreadable import UnreadableObjects
from claimctl.controller.workers import DONE, SOON, After, Outcome
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, Forbidden, Invalid, NotFound
from claimctl.kube.events import EventRecorder
from claimctl.reservation.annotation import Annotated, AnnotationPlan, Problem, plan
from claimctl.reservation.facts.reasons import Reason
from claimctl.telemetry.face import Span
from claimctl.wire.base import merge_diff, to_plain
from claimctl.wire.reservations import ClaimReservation, ClaimReservationSpec, WorkloadRef
from claimctl.wire.resources import CLAIMRESERVATIONS
from claimctl.wire.workloads import CustomWorkload

log = structlog.get_logger(__name__)

LIMITS = re.compile(
    r"ValidatingAdmissionPolicy 'claimctl-limits' .* denied request: (.+)|(exceeded quota: .+)"
)
"""How the API server words the refusals of the component limits, and of a ResourceQuota."""
RETRY_REFUSED = 60.0
"""Nothing tells that an administrator has raised a limit."""

UNREAD_KIND = 5.0
"""Seconds until a workload whose kind cannot be read is looked at again, in the cache."""


class WorkloadReconciler:
    """Keeps the reservations that a workload's annotation asks for."""

    name = "workload"

    def __init__(
        self,
        client: Client,
        caches: Caches,
        freshness: OwnWrites,
        events: EventRecorder,
        climber: Climber,
        injector: Injector | None = None,
    ) -> None:
        self._climber = climber
        self._client = client
        self._caches = caches
        self._freshness = freshness
        self._events = events
        self._injector = injector
        self._unreadable = UnreadableObjects(caches)

    async def reconcile(self, key: WorkloadKey, span: Span) -> Outcome:
        span.set(k8s__namespace__name=key.namespace, **{f"k8s__{key.kind.lower()}__name": key.name})
        await self._climber.read(key)
        kind = (key.api_group, key.kind)
        if kind in self._caches.kinds.states and self._caches.kinds.problem(kind):
            # the cache may show a workload that is gone: garbage collection would delete its
            # ClaimReservation, and this would create it again, for ever
            return After(UNREAD_KIND)
        workload = self._caches.workload(key)
        unreadable = (
            self._caches.unreadable_workload(key),
            self._unreadable.about_reservations_for(key),
        )
        if workload is None or any(unreadable):
            return DONE
        custom = isinstance(workload, CustomWorkload)
        annotated = Annotated(
            ref=WorkloadRef(api_group=key.api_group, kind=key.kind, name=key.name),
            api_version=version_of(key, workload),
            workload=workload,
            reservations=self._caches.reservations_for(key),
            by_pods=self._climber.chains.claims_of(workload.metadata.uid) if custom else None,
        )
        wanted = plan(annotated)
        for problem in wanted.problems:
            warn(self._events, key, workload, problem, "Reserve")
        try:
            # another client may have written first; then the reconcile is repeated
            settled = await self._carry_out(wanted)
            if settled and self._injector is not None:
                settled = await self._injector.inject(key, workload)
            return DONE if settled else SOON
        except (Forbidden, Invalid) as error:
            problem = refusal(error)
            warn(self._events, key, workload, problem, "Reserve")
            if problem.reason is Reason.LIMIT_EXCEEDED:
                return After(RETRY_REFUSED)
            raise

    async def _carry_out(self, wanted: AnnotationPlan) -> bool:
        """Make the changes; False if another client has written first."""
        settled = True
        for reservation in wanted.delete:
            settled &= await self._delete(reservation)
        for reservation, spec in wanted.update:
            settled &= await self._update(reservation, spec)
        for reservation in wanted.create:
            settled &= await self._create(reservation)
        return settled

    async def _create(self, reservation: ClaimReservation) -> bool:
        """Create a reservation; False if our cache is late.

        Raises:
            AlreadyExists: the name is taken, perhaps for long: the pauses have to grow.
        """
        meta = reservation.metadata
        if self._freshness.lags(CLAIMRESERVATIONS, meta.namespace, meta.name, None):
            return False
        body = {"metadata": to_plain(meta), "spec": to_plain(reservation.spec)}
        created = await self._client.create(CLAIMRESERVATIONS, body, meta.namespace)
        self._freshness.wrote(CLAIMRESERVATIONS, created.metadata)
        log.info("reservation created", reservation=meta.name)
        return True

    async def _update(self, reservation: ClaimReservation, spec: ClaimReservationSpec) -> bool:
        meta = reservation.metadata
        body: dict[str, Any] = merge_diff(to_plain(reservation.spec), to_plain(spec))
        try:
            written = await self._client.merge_patch(CLAIMRESERVATIONS, meta, {"spec": body})
        except (Conflict, NotFound):
            return False
        self._freshness.wrote(CLAIMRESERVATIONS, written.metadata)
        return True

    async def _delete(self, reservation: ClaimReservation) -> bool:
        meta = reservation.metadata
        try:
            await self._client.delete_as_read(CLAIMRESERVATIONS, meta)
        except NotFound:
            return True
        except Conflict:
            return False
        log.info("reservation deleted", reservation=meta.name)
        return True


def refusal(error: Forbidden | Invalid) -> Problem:
    """What to tell the user whose annotation asks for a write that the API server refuses."""
    if limit := LIMITS.search(error.message):
        note = f"the annotation asks for more than is allowed: {limit[1] or limit[2]}"
        return Problem(Reason.LIMIT_EXCEEDED, note)
    forbidden = isinstance(error, Forbidden)
    return Problem(Reason.FORBIDDEN if forbidden else Reason.INVALID_ANNOTATION, str(error))
