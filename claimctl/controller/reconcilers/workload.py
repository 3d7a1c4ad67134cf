"""The reconciler of annotated workloads: which ClaimReservations they own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from claimctl.controller.caches.chains import Climber, OwnerKey
from claimctl.controller.caches.informers import reserved_key
from claimctl.controller.events import refusal, version_of, warn
from claimctl.controller.keys import WorkloadKey
from claimctl.controller.snapshots import Knowledge
from claimctl.controller.template_injection import Injector
from claimctl.controller.unreadable import UnreadableObjects
from claimctl.controller.workers import DONE, SOON, After
from claimctl.controller.writer import reservation_body
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Conflict, Forbidden, Invalid, NotFound
from claimctl.kube.events import EventRecorder
from claimctl.reservation import sticky
from claimctl.reservation.annotation import (
    Annotated,
    AnnotationPlan,
    is_orphan,
    must_keep,
    plan,
)
from claimctl.reservation.facts.ancestors import AnnotationStanding
from claimctl.telemetry.face import LateLogger, Span
from claimctl.wire.base import merge_diff, to_plain
from claimctl.wire.meta import ObjectHeader, ObjectMeta
from claimctl.wire.reservations import (
    POD_GROUP_ANNOTATION,
    RESERVE_ANNOTATION,
    ClaimReservation,
    ClaimReservationSpec,
    WorkloadRef,
)
from claimctl.wire.resources import CLAIMRESERVATIONS, read_as
from claimctl.wire.workloads import CustomWorkload, Workload

log = LateLogger(__name__)

MOST_WRITES = 20
"""The most writes of one workload until others have their turn."""
NEXT_TURN = After(0.05)
"""The outcome when writes are left; after it, a watch shows those of this turn."""
UNREAD_KIND = 5.0
"""Seconds until a workload whose kind cannot be read, or an object above which is not known yet, is
looked at again, in the cache."""

Step = tuple[ObjectMeta, ObjectMeta | None, Callable[[], Awaitable[bool]]]
"""The object, its version in the cache, and the write, which gives False if another client has
written first: then the reconcile is repeated."""


class WorkloadReconciler:
    """Keeps the reservations that a workload's annotation asks for."""

    name = "workload"

    def __init__(
        self,
        client: Client,
        knowledge: Knowledge,
        events: EventRecorder,
        climber: Climber,
        injector: Injector,
    ) -> None:
        self._climber = climber
        self._client = client
        self._caches = knowledge.caches
        self._own_writes = knowledge.observations.own_writes
        self._events = events
        self._injector = injector
        self._ancestry = knowledge.ancestry
        self._unreadable = UnreadableObjects(knowledge.caches)

    async def reconcile(self, key: WorkloadKey, span: Span) -> After:
        span.set(k8s__namespace__name=key.namespace, **{f"k8s__{key.kind.lower()}__name": key.name})
        if (seconds := await self._climber.read(key)) is not None:
            return After(seconds)
        kind, workload = (key.api_group, key.kind), self._caches.workload(key)
        if kind in self._caches.kinds.states and self._caches.kinds.problem(kind):
            # the cache may show a workload that is gone: garbage collection would delete its
            # ClaimReservation, and this would create it again, for ever
            return After(UNREAD_KIND) if workload is not None else DONE
        unreadable = (
            self._caches.unreadable_workload(key),
            self._unreadable.about_reservations_for(key),
        )
        if any(unreadable):
            return DONE
        if workload is None:
            return await self._clear_up(key)
        return await self._serve(key, workload)

    async def _serve(self, key: WorkloadKey, workload: Workload) -> After:
        """Give the workload the reservations that its annotation asks for, if that counts."""
        await self._ancestry.learn(self._client, workload.metadata)
        uid, by_pods = workload.metadata.uid, None
        if isinstance(workload, CustomWorkload):
            owner = OwnerKey(key.namespace, key.api_group, key.kind, key.name, uid)
            by_pods = self._climber.chains.claims_of(owner)
        annotated = Annotated(
            ref=WorkloadRef(api_group=key.api_group, kind=key.kind, name=key.name),
            api_version=version_of(key, workload),
            workload=workload,
            reservations=self._caches.reservations_for(key),
            by_pods=by_pods,
            authority=self._ancestry.who_decides(RESERVE_ANNOTATION, workload.metadata),
        )
        annotated = replace(annotated, kept=self._kept(annotated))
        wanted = plan(annotated)
        without = (pod.metadata.name for pod in self._caches.pods_without_policy(key))
        about_sticky = sticky.problems(workload, annotated.ref, without)
        for problem in (*wanted.problems, *about_sticky):
            warn(self._events, key, workload, problem, "Reserve")
        try:
            outcome = await self._carry_out(wanted)
            if outcome != DONE:
                return outcome
            if not await self._inject(key, workload):
                return SOON
            return (
                After(UNREAD_KIND)
                if annotated.authority.standing is AnnotationStanding.OPEN
                else DONE
            )
        except (Forbidden, Invalid) as error:
            warn(self._events, key, workload, refusal(error), "Reserve")
            raise

    async def _inject(self, key: WorkloadKey, workload: Workload) -> bool:
        """Change the pod template if the workload asks for it; False to try again."""
        authority = self._ancestry.who_decides(POD_GROUP_ANNOTATION, workload.metadata)
        counts = authority.standing in (AnnotationStanding.OWN, AnnotationStanding.UNREAD)
        return not counts or await self._injector.inject(key, workload)

    def _kept(self, annotated: Annotated) -> frozenset[str]:
        """The claims that the workload goes on to hold although an object above decides."""
        keys = map(reserved_key, annotated.reservations)
        return frozenset(
            key.name
            for key in keys
            if (claim := self._caches.claims.get(key.name, key.namespace)) is not None
            and must_keep(annotated, claim, self._caches.reservations_of(key))
        )

    async def _clear_up(self, key: WorkloadKey) -> After:
        """Delete the reservations of a workload that is gone once they hold nothing: after a
        deletion with cascade=orphan, garbage collection does not, and a later workload of that name
        may want none."""
        made = filter(is_orphan, self._caches.reservations_for(key))
        left = tuple(reservation for reservation in made if self._holds_nothing(reservation))
        if not left:
            return DONE
        resource = await Discovery(self._client).workload((key.api_group, key.kind))
        if resource is None:
            return DONE
        header = read_as(resource, ObjectHeader)
        if await self._client.find(header, key.name, key.namespace) is not None:
            # the cache is late; an event follows
            return DONE
        return await self._carry_out(AnnotationPlan(left_over=left))

    def _holds_nothing(self, reservation: ClaimReservation) -> bool:
        """Whether the claim is not allocated, and nothing about an earlier allocation is on
        record."""
        meta, status = reservation.metadata, reservation.status
        claim = self._caches.claims.get(*reversed(reserved_key(reservation)))
        allocated = claim is not None and claim.status.allocation is not None
        busy = allocated or status.release is not None or status.force_deleted_pods
        return not (busy or meta.deleting)

    async def _carry_out(self, wanted: AnnotationPlan) -> After:
        """Make the changes, at most ``MOST_WRITES`` of them, that our own writes have not made."""
        late, writes = False, 0
        for meta, cached, write in self._steps(wanted):
            if self._own_writes.lags(CLAIMRESERVATIONS, meta.namespace, meta.name, cached):
                late = True
            elif writes == MOST_WRITES:
                return NEXT_TURN
            else:
                late |= not await write()
                writes += 1
        return SOON if late else DONE

    def _steps(self, wanted: AnnotationPlan) -> Iterator[Step]:
        for old in wanted.delete:
            yield old.metadata, old.metadata, partial(self._delete, old)
        for old, spec in wanted.update:
            yield old.metadata, old.metadata, partial(self._update, old, spec)
        for new in wanted.create:
            yield new.metadata, None, partial(self._create, new)
        # last: those of an earlier workload may hold what the new ones go on to hold
        for old in wanted.left_over:
            yield old.metadata, old.metadata, partial(self._delete, old)

    async def _create(self, reservation: ClaimReservation) -> bool:
        """Create a reservation.

        Raises:
            AlreadyExists: the name is taken, perhaps for long: the pauses have to grow.
        """
        meta = reservation.metadata
        body = reservation_body(reservation)
        created = await self._client.create(CLAIMRESERVATIONS, body, meta.namespace)
        self._own_writes.wrote(CLAIMRESERVATIONS, created.metadata)
        log.info("reservation created", reservation=meta.name)
        return True

    async def _update(self, reservation: ClaimReservation, spec: ClaimReservationSpec) -> bool:
        """Change the spec; False if another client has written first, as in ``_delete``."""
        meta = reservation.metadata
        body: dict[str, Any] = merge_diff(to_plain(reservation.spec), to_plain(spec))
        try:
            written = await self._client.merge_patch(CLAIMRESERVATIONS, meta, {"spec": body})
        except (Conflict, NotFound):
            return False
        self._own_writes.wrote(CLAIMRESERVATIONS, written.metadata)
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
