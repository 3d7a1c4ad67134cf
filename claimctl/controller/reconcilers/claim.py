"""The reconciler of claims: observe, snapshot, decide, then read more or write, and record."""

from __future__ import annotations

from dataclasses import replace

import structlog

from claimctl.controller.claim_metrics import ClaimMetrics
from claimctl.controller.events import announce
from claimctl.controller.keys import ClaimKey
from claimctl.controller.live_reads import LIVE_ATTEMPTS, Findings
from claimctl.controller.snapshots import Knowledge, Snapshots
from claimctl.controller.workers import DONE, After, Outcome
from claimctl.controller.writer import TemplateMissing, Writer
from claimctl.kube.client import Client
from claimctl.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    UnreadableObject,
)
from claimctl.kube.events import EventRecorder
from claimctl.reservation.decide import decide, reads_before, serves
from claimctl.reservation.facts.decision import (
    CreateClaim,
    Decision,
    Need,
    Precaution,
    ReadClaim,
    SetFinalizer,
    Write,
    WriteList,
    WriteStatus,
    is_last,
)
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.reserved_for.listing_ahead import listed_by
from claimctl.reservation.status.desired import Refusal, refused_status
from claimctl.telemetry.face import Span, Telemetry
from claimctl.wire.meta import ObjectMeta

log = structlog.get_logger(__name__)

MAX_ROUNDS = 12
"""The most decisions in one reconcile, each with the answers to the needs of the last."""
SOON = 0.5
"""Seconds to wait until a watch shows what this process knows already."""
WATCHDOG = 15.0
"""Seconds after a write until the next reconcile, even if no watch shows the write."""
TEMPLATE_RETRY = 30.0
"""Seconds until a missing template is read again. Templates are not watched."""


class ClaimReconciler:
    """Reconciles one claim and the reservations that name it."""

    name = "claim"

    def __init__(
        self, client: Client, knowledge: Knowledge, events: EventRecorder, telemetry: Telemetry
    ) -> None:
        self._know = knowledge
        self._snapshots = Snapshots(knowledge)
        self._writer = Writer(client)
        self._events = events
        self._metrics = ClaimMetrics(telemetry)

    async def reconcile(self, key: ClaimKey, span: Span) -> Outcome:
        span.set(k8s__namespace__name=key.namespace, claimctl__claim__name=key.name)
        if self._snapshots.lagging(key):
            return After(SOON)
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
        log.info("requeued", reason="the claim changes too fast", seconds=SOON)
        return After(SOON)

    async def _round(self, key: ClaimKey, findings: Findings, span: Span) -> Findings | Outcome:
        """Observe, decide, and read more or write once.

        Returns:
            The findings for the next round, or the outcome of the reconcile.
        """
        # 1. Observe: note what only this process knows.
        self._snapshots.observe(key, findings)
        # 2. Copy everything about the claim as it is at this moment.
        snapshot = self._snapshots.build(key, findings)
        # 3. Decide. A claim that was read live may be used only for the write that needed it.
        decision = decide(snapshot)
        if findings.claim_read_for is not None and (
            decision.needs or not serves(findings.claim_read_for, decision.write)
        ):
            return After(SOON)
        if decision.needs:
            return await self._read_live(snapshot, decision.needs, findings)
        self._report(key, snapshot, decision, span)
        # 4. Do the live reads that the write needs. A claim that is gone changes nothing.
        if needs := reads_before(snapshot, decision.write):
            step = await self._read_live(snapshot, needs, findings)
            if not isinstance(step, Findings) or not step.claim_gone:
                return step
        if findings.held_for_another:
            return After(WATCHDOG)
        # 5. Write, and record what was written.
        if decision.write is not None:
            return await self._write(snapshot, decision, decision.write, findings)
        if findings.no_template:
            return _within(TEMPLATE_RETRY, decision)
        return DONE if decision.after is None else After(decision.after)

    async def _read_live(
        self, snapshot: Snapshot, needs: tuple[Need | Precaution, ...], findings: Findings
    ) -> Findings | Outcome:
        found = await self._know.investigator.answer(snapshot, needs, findings)
        if found.live is not None and not found.live.claim_version:
            log.info("requeued", reason="the pod cache is late", seconds=SOON)
            return After(SOON)
        if found.reservation_ended:
            log.info("requeued", reason="the cache of ClaimReservations is late", seconds=SOON)
            return After(SOON)
        return replace(found, claim=snapshot.claim)

    def _report(self, key: ClaimKey, snapshot: Snapshot, decision: Decision, span: Span) -> None:
        self._metrics.count(key, snapshot, decision)
        if decision.statuses:
            # without them, a write came first, and the statuses are due as before
            self._know.observations.claims.statuses_due(key, _due(snapshot, decision))
        for blocker in decision.blockers:
            if blocker.reason is Reason.SETTLING and blocker.after is not None:
                # a LIST follows, which counts only once the pod cache has reached its version
                self._know.caches.pods.expect(blocker.after)
        span.set(
            claimctl__claim__write=type(decision.write).__name__ if decision.write else "",
            claimctl__claim__verdict=decision.releasing or "",
            claimctl__claim__blockers=",".join(blocker.reason for blocker in decision.blockers),
        )

    async def _write(
        self, snapshot: Snapshot, decision: Decision, write: Write, findings: Findings
    ) -> Findings | Outcome:
        try:
            written = await self._writer.apply(snapshot, write)
            hurried = decision.releasing is not None or _begins(snapshot, write)
            self._record(snapshot, write, written, hurried=hurried)
            self._announce(snapshot, write, decision)
        except (Conflict, NotFound, AlreadyExists) as error:
            if findings.no_template:
                # nothing waits for it, so the pauses may grow
                raise
            if not isinstance(error, Conflict) or not _by_live_claim(write, findings):
                return After(SOON)
            return await self._read_live(snapshot, (ReadClaim(write),), findings)
        except TemplateMissing:
            return replace(findings, template_missing=True)
        except (Forbidden, Invalid, BadRequest, UnreadableObject) as error:
            if isinstance(write, CreateClaim) and not isinstance(error, Forbidden):
                return replace(findings, template_refused=str(error))
            if isinstance(error, ApiError):
                await self._report_refusal(snapshot, decision, error)
            raise
        if findings.no_template:
            return _within(TEMPLATE_RETRY, decision)
        if hurried and _changed(write, written) and not self._snapshots.lagging(_key_of(snapshot)):
            # the watch was faster than the answer: its event did not look like our own
            return After(0.0)
        return DONE if is_last(write) else _within(WATCHDOG, decision)

    def _record(
        self,
        snapshot: Snapshot,
        write: Write,
        written: ObjectMeta | None,
        *,
        hurried: bool = False,
    ) -> None:
        """Note the write in the observations, and measure it."""
        self._know.observations.wrote(snapshot, write, written, hurried=hurried)
        self._metrics.wrote(snapshot, write, self._know.observations.claims)
        tell = log.debug if isinstance(write, WriteStatus) else log.info
        tell("written", write=type(write).__name__)

    def _announce(self, snapshot: Snapshot, write: Write, decision: Decision) -> None:
        """Record the Events of a status that was written, or that its reservation went without."""
        if isinstance(write, WriteStatus):
            announce(self._events, snapshot, write.reservation, write.status)
        elif isinstance(write, SetFinalizer) and write.reservation.status.release is not None:
            made = write.reservation
            last = decision.statuses.get(made.metadata.name, made.status)
            announce(self._events, snapshot, made, last)

    async def _report_refusal(
        self, snapshot: Snapshot, decision: Decision, error: ApiError
    ) -> None:
        """Write into the reservations' statuses what the API server refuses.

        If the API server refused a status, only its condition Ready changes. The caller raises the
        error.
        """
        reason = Reason.FORBIDDEN if isinstance(error, Forbidden) else Reason.INVALID
        stays = isinstance(decision.write, WriteStatus) and reason is Reason.INVALID
        for held in snapshot.reservations:
            current = held.reservation.status
            wanted = current if stays else decision.statuses.get(held.name, current)
            status = refused_status(
                held.reservation, wanted, Refusal(reason, str(error)), snapshot.now
            )
            if status != current:
                await self._write_refusal(snapshot, WriteStatus(held.reservation, status))

    async def _write_refusal(self, snapshot: Snapshot, write: WriteStatus) -> None:
        try:
            self._record(snapshot, write, await self._writer.apply(snapshot, write))
        except ApiError as error:
            log.warning("status not written", error=str(error))
        announce(self._events, snapshot, write.reservation, write.status)


def _changed(write: Write, written: ObjectMeta | None) -> bool:
    """Whether the server stored anything. It drops fields of a status that its CRD lacks."""
    before = write.reservation.metadata.resource_version if isinstance(write, WriteStatus) else ""
    return written is None or written.resource_version != before


def _due(snapshot: Snapshot, decision: Decision) -> list[str]:
    """The reservations whose status should change."""
    wanted = decision.statuses
    return [
        held.name
        for held in snapshot.reservations
        if held.name in wanted and held.reservation.status != wanted[held.name]
    ]


def _within(seconds: float, decision: Decision) -> After:
    """Reconcile again when the decision asks for it, and after ``seconds`` at the latest."""
    return After(min(decision.after or seconds, seconds))


def _key_of(snapshot: Snapshot) -> ClaimKey:
    return ClaimKey(snapshot.namespace, snapshot.name)


def _begins(snapshot: Snapshot, write: Write) -> bool:
    """Whether pods may wait for the next write: the hold, or more pods that are listed ahead."""
    listing = isinstance(write, WriteList) and bool(listed_by(snapshot, write))
    return listing or isinstance(write, SetFinalizer)


def _by_live_claim(write: Write, findings: Findings) -> bool:
    """Whether to read the claim live, decide and write at once, because another client is writing.

    A decision that needs a LIST waits instead, because a LIST takes too long between the read and
    the write.
    """
    listed = findings.live is not None or findings.claim_reads >= LIVE_ATTEMPTS
    return isinstance(write, WriteList) and not listed
