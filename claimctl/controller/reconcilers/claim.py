"""The reconciler of claims: observe, snapshot, decide, then read more or write, and record."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto

from claimctl.controller.claim_metrics import ClaimMetrics
from claimctl.controller.events import announce, refusal, warn
from claimctl.controller.keys import ClaimKey, WorkloadKey
from claimctl.controller.live_reads import LIVE_ATTEMPTS, Findings
from claimctl.controller.snapshots import Knowledge, Snapshots
from claimctl.controller.workers import DONE, SOON, After
from claimctl.controller.writer import TemplateMissing, Writer
from claimctl.kube.client import Client
from claimctl.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Unchangeable,
    UnreadableObject,
)
from claimctl.kube.events import EventRecorder
from claimctl.reservation import sticky
from claimctl.reservation.decide import decide, reads_before, serves
from claimctl.reservation.facts.decision import (
    CreateClaim,
    CreateReservation,
    Decision,
    DeleteClaim,
    Need,
    ReadClaim,
    SetFinalizer,
    Write,
    WriteList,
    WriteStatus,
)
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.release.objects import goes_with_reservation
from claimctl.reservation.reserved_for.listing_ahead import listed_by
from claimctl.reservation.status.desired import refused_status
from claimctl.telemetry.face import LateLogger, Span, Telemetry
from claimctl.wire.reservations import ClaimReservation

log = LateLogger(__name__)

MAX_ROUNDS = 12
"""The most decisions in one reconcile, each with the answers to the needs of the last."""
OVERTAKEN = SOON
"""The outcome when another client wrote first."""
WATCHDOG = 15.0
"""Seconds after a write until the next reconcile, even if no watch shows the write."""
TEMPLATE_RETRY = 30.0
"""Seconds until a missing template is read again. Templates are not watched."""


class Consequence(Enum):
    """What follows from a write that failed."""

    AGAIN_SOON = auto()
    """Another client wrote first; the watch shows it."""
    AGAIN_ON_LIVE_CLAIM = auto()
    """Another client is writing the list. Read the claim live, decide and write at once."""
    WITHOUT_TEMPLATE = auto()
    """Decide again, knowing that the template is missing or refused."""
    WITHOUT_DELETION = auto()
    """Decide again, knowing that the claim cannot be deleted: its release has to go on."""
    LEAVE_ALONE = auto()
    """No write can change the claim. Say so, and do not try again for long."""
    REPORT_REFUSAL = auto()
    """Write into the statuses what the API server refuses, and back off."""
    BACK_OFF = auto()


_CONSEQUENCES: tuple[tuple[tuple[type[Exception], ...], type, Consequence], ...] = (
    ((TemplateMissing,), CreateClaim, Consequence.WITHOUT_TEMPLATE),
    ((Invalid, BadRequest, UnreadableObject), CreateClaim, Consequence.WITHOUT_TEMPLATE),
    ((Forbidden, Invalid, BadRequest), DeleteClaim, Consequence.WITHOUT_DELETION),
    ((Unchangeable,), object, Consequence.LEAVE_ALONE),
    ((Forbidden, Invalid, BadRequest), object, Consequence.REPORT_REFUSAL),
    # the name may be taken for long: the pauses have to grow
    ((AlreadyExists,), CreateReservation, Consequence.REPORT_REFUSAL),
    ((Conflict,), WriteList, Consequence.AGAIN_ON_LIVE_CLAIM),
    ((Conflict, NotFound, AlreadyExists), object, Consequence.AGAIN_SOON),
)
"""The consequence of each error for each kind of write. The first row that fits counts."""


class ClaimReconciler:
    """Reconciles one claim and the reservations that name it."""

    name = "claim"

    def __init__(
        self, client: Client, knowledge: Knowledge, events: EventRecorder, telemetry: Telemetry
    ) -> None:
        self._know = knowledge
        self._snapshots = Snapshots(knowledge)
        self._writer = Writer(client, knowledge.clock)
        self._events = events
        self._metrics = ClaimMetrics(telemetry)
        self._first_spans: dict[ClaimKey, object] = {}
        """Of releases that go on: the span of the reconcile that found the claim in release."""

    async def reconcile(self, key: ClaimKey, span: Span) -> After:
        span.set(k8s__namespace__name=key.namespace, claimctl__claim__name=key.name)
        if self._snapshots.lagging(key):
            return SOON
        findings = Findings()
        try:
            for _ in range(MAX_ROUNDS):
                step = await self._round(key, findings, span)
                if not isinstance(step, Findings):
                    return step
                findings = step
        except UnreadableObject as error:
            # the watch brings the same object, or has brought it
            log.info("requeued", reason=str(error), seconds=WATCHDOG)
            return After(WATCHDOG)
        return _requeued("the claim changes too fast")

    async def _round(self, key: ClaimKey, findings: Findings, span: Span) -> Findings | After:
        """Observe, decide, and read more or write once. Returns the findings for the next round, or
        the outcome of the reconcile."""
        # 1. Observe: note what only this process knows.
        self._snapshots.observe(key, findings)
        # 2. Copy everything about the claim as it is at this moment.
        snapshot = self._snapshots.build(key, findings)
        # 3. Decide. A claim that was read live may be used only for the write that needed it.
        decision = decide(snapshot)
        write, read_for = decision.write, findings.claim_read_for
        if read_for is not None and (decision.needs or not serves(read_for, write)):
            return SOON
        if decision.needs:
            return await self._read_live(snapshot, decision.needs, findings)
        self._report(key, snapshot, decision, span)
        # 4. Do the live reads that the write needs. A claim that is gone changes nothing.
        if needs := reads_before(snapshot, write):
            step = await self._read_live(snapshot, needs, findings)
            if not isinstance(step, Findings) or not step.claim_gone:
                return step
        if write is None and snapshot.no_template:
            return _within(TEMPLATE_RETRY, decision)
        if write is None:
            return After(decision.after)
        # 5. Write: at most one request. What follows from an error is in one table.
        try:
            written = await self._writer.apply(snapshot, write)
        except (KubeError, TemplateMissing) as error:
            match _consequence(error, write, snapshot, findings):
                case Consequence.AGAIN_SOON:
                    return OVERTAKEN
                case Consequence.AGAIN_ON_LIVE_CLAIM:
                    return await self._read_live(snapshot, (ReadClaim(write),), findings)
                case Consequence.WITHOUT_TEMPLATE if isinstance(error, TemplateMissing):
                    return replace(findings, template_missing=True)
                case Consequence.WITHOUT_TEMPLATE:
                    return replace(findings, template_refused=str(error))
                case Consequence.WITHOUT_DELETION if goes_with_reservation(snapshot):
                    log.warning("claim not deleted", error=str(error))
                    return replace(findings, deletion_refused=True)
                case Consequence.LEAVE_ALONE:
                    log.warning("claim cannot be changed", error=str(error))
                    self._know.observations.claims.refused(key)
                    return After(0.0)
                case Consequence.REPORT_REFUSAL if isinstance(write, CreateReservation):
                    self._tell_workload(key, write.reservation, error)
                case Consequence.REPORT_REFUSAL | Consequence.WITHOUT_DELETION:
                    await self._report_refusal(snapshot, decision, error)
            raise
        # 6. Record the write in the observations, and tell people. Pods may wait for the step after
        # a write that adds the hold or lists pods: then the reconcile goes on without a delay.
        begins = isinstance(write, WriteList) and bool(listed_by(snapshot, write))
        begins |= isinstance(write, SetFinalizer) or decision.releasing is not None
        begins |= isinstance(write, WriteList) and snapshot.late is not None
        self._know.observations.wrote(snapshot, write, written, hurried=begins)
        self._metrics.wrote(snapshot, write, self._know.observations.claims)
        tell = log.debug if isinstance(write, WriteStatus) else log.info
        tell("written", write=type(write).__name__)
        self._announce(snapshot, write, decision)
        # 7. When is the claim looked at again?
        if snapshot.no_template:
            return _within(TEMPLATE_RETRY, decision)
        # the server drops fields of a status that its CRD lacks
        before = write.reservation.metadata if isinstance(write, WriteStatus) else None
        stored = not (before and written and written.resource_version == before.resource_version)
        if begins and stored and not self._snapshots.lagging(key):
            # the watch was faster than the answer: its event did not look like our own
            return After(0.0)
        last = isinstance(write, WriteStatus) and write.last
        return DONE if last else _within(WATCHDOG, decision)

    async def _read_live(
        self, snapshot: Snapshot, needs: tuple[Need | ReadClaim, ...], findings: Findings
    ) -> Findings | After:
        answers = await self._know.investigator.answer(snapshot, needs, findings)
        if answers.live is not None and not answers.live.claim_version:
            return _requeued("the pod cache is late")
        if answers.reservation_ended:
            return _requeued("the cache of ClaimReservations is late")
        return replace(answers, claim=snapshot.claim)

    def _report(self, key: ClaimKey, snapshot: Snapshot, decision: Decision, span: Span) -> None:
        self._metrics.count(key, snapshot, decision)
        if decision.statuses:
            # without them, a write came first, and the statuses are due as before
            due = [
                held.reservation.metadata.uid
                for held in snapshot.reservations
                if decision.statuses.get(held.name, held.reservation.status)
                != held.reservation.status
            ]
            self._know.observations.reservations.statuses_due(key, due)
        for blocker in decision.blockers:
            if blocker.reason is Reason.SETTLING and blocker.after is not None:
                # a LIST follows, which counts only once the pod cache has reached its version
                self._know.caches.pods.probes.expect(blocker.after)
        self._link_release(key, decision, span)
        span.set(
            claimctl__claim__write=type(decision.write).__name__ if decision.write else "",
            claimctl__claim__verdict=decision.releasing or "",
            claimctl__claim__blockers=",".join(blocker.reason for blocker in decision.blockers),
        )

    def _link_release(self, key: ClaimKey, decision: Decision, span: Span) -> None:
        """Link the reconciles of one release to its first one, so that its seconds are seen."""
        if decision.releasing is None:
            self._first_spans.pop(key, None)
            return
        first = self._first_spans.setdefault(key, span.context)
        if first != span.context:
            span.link(first)

    def _announce(self, snapshot: Snapshot, write: Write, decision: Decision) -> None:
        """Emit the Events for a status, also when the reservation is removed before the status is
        written."""
        if isinstance(write, WriteStatus):
            announce(self._events, snapshot, write.reservation, write.status)
        elif isinstance(write, SetFinalizer) and write.reservation.status.release is not None:
            gone = write.reservation
            last = decision.statuses.get(gone.metadata.name, gone.status)
            announce(self._events, snapshot, gone, last)

    def _tell_workload(self, key: ClaimKey, refused: ClaimReservation, error: Exception) -> None:
        """Tell a workload why its sticky claim gets no reservation: a quota, a limit, an old CRD,
        or a name that is taken. There is no status yet that could say so."""
        ref, problem = refused.spec.workload_ref, None
        known = self._know.caches.reservations.get(refused.metadata.name, key.namespace)
        if isinstance(error, Forbidden | Invalid | BadRequest):
            problem = refusal(error)
        elif known is not None and known.spec.resource_claim_name != key.name:
            problem = sticky.name_taken(known, key.name)
        of = WorkloadKey(ref.api_group, ref.kind, key.namespace, ref.name)
        workload = self._know.caches.workload(of)
        if workload is not None and problem is not None:
            warn(self._events, of, workload, problem, "Reserve")

    async def _report_refusal(
        self, snapshot: Snapshot, decision: Decision, error: Exception
    ) -> None:
        """Write into the reservations' statuses what the API server refuses. If it refused one of
        them, only its condition Ready changes. The caller raises the error."""
        reason = Reason.FORBIDDEN if isinstance(error, Forbidden) else Reason.INVALID
        stays = isinstance(decision.write, WriteStatus) and reason is Reason.INVALID
        for held in snapshot.reservations:
            reservation, current = held.reservation, held.reservation.status
            wanted = current if stays else decision.statuses.get(held.name, current)
            status = refused_status(reservation, wanted, reason, str(error), snapshot.now)
            if status == current:
                continue
            write = WriteStatus(reservation, status)
            try:
                written = await self._writer.apply(snapshot, write)
                self._know.observations.wrote(snapshot, write, written)
            except ApiError as failure:
                log.warning("status not written", error=str(failure))
            announce(self._events, snapshot, reservation, status)


def _consequence(
    error: Exception, write: Write, snapshot: Snapshot, findings: Findings
) -> Consequence:
    """What follows from an error, by the table, and by what this reconcile has done already."""
    consequence = next(
        (
            consequence
            for errors, writes, consequence in _CONSEQUENCES
            if isinstance(error, errors) and isinstance(write, writes)
        ),
        Consequence.BACK_OFF,
    )
    # a LIST takes too long between a live read of the claim and the write
    listed = findings.live is not None or findings.claim_reads >= LIVE_ATTEMPTS
    if consequence is Consequence.AGAIN_ON_LIVE_CLAIM and listed:
        consequence = Consequence.AGAIN_SOON
    again = consequence in (Consequence.AGAIN_SOON, Consequence.AGAIN_ON_LIVE_CLAIM)
    # nothing waits for a claim without a template, so the pauses may grow
    return Consequence.BACK_OFF if again and snapshot.no_template else consequence


def _requeued(reason: str) -> After:
    log.info("requeued", reason=reason, seconds=SOON.seconds)
    return SOON


def _within(seconds: float, decision: Decision) -> After:
    """Reconcile again when the decision asks for it, and after ``seconds`` at the latest."""
    return After(min(decision.after or seconds, seconds))
