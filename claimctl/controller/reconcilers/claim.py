"""The reconciler of claims: snapshot, decision, at most one write."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import structlog

from claimctl.controller.caches.informers import reserved_key
from claimctl.controller.claim_metrics import Census
from claimctl.controller.event_subjects import claim_subject, reservation_subject, workload_subject
from claimctl.controller.events import announcements
from claimctl.controller.keys import ClaimKey
from claimctl.controller.live_reads import Findings
from claimctl.controller.reconcilers.result import DONE, After, Outcome
from claimctl.controller.snapshots import Knowledge, Snapshots
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
from claimctl.reservation.decide import decide
from claimctl.reservation.decision import (
    CreateClaim,
    Decision,
    SetFinalizer,
    Write,
    WriteList,
    WriteStatus,
)
from claimctl.reservation.reasons import Reason
from claimctl.reservation.reserved_for.ownership import unanswered
from claimctl.reservation.snapshot import Held, Snapshot
from claimctl.reservation.status.refusals import Refusal, refused_status
from claimctl.reservation.unreadable import may_concern
from claimctl.telemetry.face import Span, Telemetry
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import ClaimReservationStatus
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS

log = structlog.get_logger(__name__)

MAX_ROUNDS = 8
"""How often a decision may ask for something before the key has to wait."""
LIVE_ATTEMPTS = 5
"""Writes tried in a row, each on a claim just read, beside a busy writer."""
SOON = 0.5
"""Seconds to wait for a watch that is about to tell what we know already."""
WATCHDOG = 15.0
"""After a write: seconds after which to look again even if no watch tells of it."""
TEMPLATE_RETRY = 30.0
"""Templates are not watched: seconds after which to ask for a missing one again."""


class Undecided(Exception):
    """No decision now: the pod cache is late, or pods vanish faster than they can be asked for."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A decision with what it was made from."""

    snapshot: Snapshot
    decision: Decision
    findings: Findings


class ClaimReconciler:
    """Brings one claim, and the reservations that name it, to where they should be."""

    name = "claim"

    def __init__(
        self, client: Client, knowledge: Knowledge, events: EventRecorder, telemetry: Telemetry
    ) -> None:
        self._client = client
        self._know = knowledge
        self._snapshots = Snapshots(knowledge)
        self._writer = Writer(client, knowledge, telemetry)
        self._events = events
        self._census = Census(telemetry)

    async def reconcile(self, key: ClaimKey, span: Span) -> Outcome:
        span.set(k8s__namespace__name=key.namespace, claimctl__claim__name=key.name)
        if self._snapshots.lagging(key):
            return After(SOON)
        try:
            judged = await self._judge(key, Findings())
            self._tell(key, judged, span)
            if judged.decision.write is None:
                return _at_rest(judged)
            return await self._carry_out(key, judged)
        except Undecided as error:
            log.info("looks again", claim=str(key), reason=str(error))
            return After(SOON)
        except UnreadableObject as error:
            # the watch brings the same object, or has brought it
            log.info("looks again later", claim=str(key), reason=str(error))
            return After(WATCHDOG)

    async def _judge(
        self, key: ClaimKey, findings: Findings, claim: ResourceClaim | None = None
    ) -> Judged:
        """Decide, find out what the decision asks for, and decide again with the answer.

        All rounds are about one version of the claim: beside a busy writer the list would
        otherwise change faster than its entries can be asked for.
        """
        for _ in range(MAX_ROUNDS):
            self._snapshots.observe(key, claim)
            snapshot = self._snapshots.build(key, findings, claim)
            claim = snapshot.claim
            decision = decide(snapshot)
            if not decision.needs:
                return Judged(snapshot, decision, findings)
            findings = await self._know.investigator.answer(snapshot, decision.needs, findings)
            if findings.live is not None and not findings.live.claim_version:
                raise Undecided("the pod cache does not show yet what a LIST showed")
        raise Undecided(f"claim {key} changes faster than it can be looked at")

    def _tell(self, key: ClaimKey, judged: Judged, span: Span) -> None:
        self._census.count(key, judged.snapshot, judged.decision)
        decision = judged.decision
        span.set(
            claimctl__claim__write=type(decision.write).__name__ if decision.write else "",
            claimctl__claim__verdict=decision.releasing or "",
            claimctl__claim__blockers=",".join(blocker.reason for blocker in decision.blockers),
        )

    async def _carry_out(self, key: ClaimKey, judged: Judged) -> Outcome:
        write = judged.decision.write
        assert write is not None
        try:
            if _parts(write) and not await self._still_parts(key, judged):
                return After(SOON)
            if _frees(write) and await self._holds_for_another(key, judged.snapshot):
                return After(WATCHDOG)
            await self._apply(judged, write)
        except Conflict:
            if isinstance(write, WriteList) and judged.findings.live is None:
                return await self._on_live_claim(key, judged.findings)
            return After(SOON)
        except (NotFound, AlreadyExists):
            return After(SOON)
        except TemplateMissing:
            found = replace(judged.findings, template_missing=True)
            return await self._without_template(key, found)
        except (Invalid, BadRequest, UnreadableObject) as error:
            if not isinstance(write, CreateClaim):
                raise
            found = replace(judged.findings, template_refused=str(error))
            return await self._without_template(key, found)
        return After(min(judged.decision.after or WATCHDOG, WATCHDOG))

    async def _still_parts(self, key: ClaimKey, judged: Judged) -> bool:
        """Whether the claim as it is now shows nothing of the reservation either.

        Another controller may have held the claim since our cache saw it, and a hold that no
        reservation names is nobody's to release.
        """
        try:
            claim = await self._client.get(RESOURCECLAIMS, key.name, key.namespace)
        except NotFound:
            return True
        self._know.memories.see(claim)
        again = await self._judge(key, judged.findings, claim)
        return again.decision.write == judged.decision.write

    async def _holds_for_another(self, key: ClaimKey, snapshot: Snapshot) -> bool:
        """Whether another controller holds the claim for a reservation that our cache lacks."""
        known = [held.reservation for held in snapshot.reservations]
        if snapshot.claim is None or not unanswered(snapshot.claim, known):
            return False
        listed = await self._client.list(CLAIMRESERVATIONS, key.namespace, partial=True)
        seen = {one.metadata.uid for one in known}
        return any(may_concern(each, *key, snapshot.claim) for each in listed.unreadable) or any(
            reserved_key(one) == key and one.metadata.uid not in seen for one in listed.items
        )

    async def _apply(self, judged: Judged, write: Write) -> None:
        try:
            await self._writer.apply(judged.snapshot, write)
        except Forbidden as error:
            await self._tell_refusal(judged, Refusal(Reason.FORBIDDEN, str(error)))
            raise
        except (Invalid, BadRequest) as error:
            if not isinstance(write, CreateClaim):
                await self._tell_refusal(judged, Refusal(Reason.INVALID, str(error)))
            raise
        log.info("wrote", claim=_name(judged.snapshot), write=type(write).__name__)
        if isinstance(write, WriteStatus):
            self._announce(judged.snapshot, write)

    async def _on_live_claim(self, key: ClaimKey, findings: Findings) -> Outcome:
        """Beside a busy writer the cache is always late: read, decide and write in one go.

        No LIST comes between the GET and the write; a decision that asks for one waits for the
        watch instead.
        """
        for _ in range(LIVE_ATTEMPTS):
            try:
                claim = await self._client.get(RESOURCECLAIMS, key.name, key.namespace)
            except NotFound:
                return After(SOON)
            self._know.memories.see(claim)
            self._snapshots.observe(key, claim)
            snapshot = self._snapshots.build(key, findings, claim)
            decision = decide(snapshot)
            if decision.needs or not isinstance(decision.write, WriteList):
                return After(SOON)
            try:
                await self._apply(Judged(snapshot, decision, findings), decision.write)
            except Conflict:
                continue
            return After(min(decision.after or WATCHDOG, WATCHDOG))
        return After(SOON)

    async def _without_template(self, key: ClaimKey, findings: Findings) -> Outcome:
        """Say so in the status, and ask again later."""
        again = await self._judge(key, findings)
        write = again.decision.write
        if write is not None and not isinstance(write, CreateClaim):
            await self._apply(again, write)
        return After(TEMPLATE_RETRY)

    async def _tell_refusal(self, judged: Judged, refusal: Refusal) -> None:
        """Let the reservations say what the API server refuses; the error itself is raised on.

        A status that is refused itself stays as it is, but for that.
        """
        stays = isinstance(judged.decision.write, WriteStatus) and refusal.reason is Reason.INVALID
        for held in judged.snapshot.reservations:
            current = held.reservation.status
            wanted = current if stays else judged.decision.statuses.get(held.name, current)
            status = refused_status(held.reservation, wanted, refusal, judged.snapshot.now)
            if status != current:
                await self._write_refusal(judged.snapshot, held, status)

    async def _write_refusal(
        self, snapshot: Snapshot, held: Held, status: ClaimReservationStatus
    ) -> None:
        write = WriteStatus(held.reservation, status)
        try:
            await self._writer.apply(snapshot, write)
        except ApiError as error:
            log.warning("cannot tell of a refusal", claim=_name(snapshot), error=str(error))
        self._announce(snapshot, write)

    def _announce(self, snapshot: Snapshot, write: WriteStatus) -> None:
        held = next(
            one for one in snapshot.reservations if one.name == write.reservation.metadata.name
        )
        subjects = [
            claim_subject(snapshot.claim) if snapshot.claim else reservation_subject(held),
            *([workload_subject(held)] if held.workload.exists else []),
        ]
        for told in announcements(write.reservation.status, write.status):
            for subject in subjects:
                self._events.record(subject, **asdict(told))


def _parts(write: Write) -> bool:
    """Whether the write lets a reservation go for good."""
    return isinstance(write, SetFinalizer) and not write.present


def _frees(write: Write) -> bool:
    """Whether the write takes out every hold, or the allocation."""
    return isinstance(write, WriteList) and (write.deallocate or write.fence)


def _at_rest(judged: Judged) -> Outcome:
    after = judged.decision.after
    return DONE if after is None else After(after)


def _name(snapshot: Snapshot) -> str:
    return f"{snapshot.namespace}/{snapshot.name}"
