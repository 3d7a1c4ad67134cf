"""Free orphans: adopt each of them, and follow what the controller does.

The controller that runs does the work, or one inside this command (``claimctl.cli.successor``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum

from claimctl.cli.errors import CommandFailed
from claimctl.cli.successor import Successor
from claimctl.cli.watching import pause
from claimctl.commands.orphans.adoption import (
    RIGHTS,
    NameTaken,
    adopt,
    give_up,
    is_handed_over,
    withdraw,
)
from claimctl.commands.orphans.judge import judge, judge_begun
from claimctl.commands.orphans.model import PASSING, Cause, Orphan, ScannedClaim
from claimctl.commands.orphans.scan import ClaimScan, scan_claims
from claimctl.controller.keys import ClaimKey
from claimctl.controller.preflight import DEFINE
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Conflict, KubeError, NotFound, RequestTimeout, Unreachable
from claimctl.parallel import in_parallel
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import find_condition
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

PARALLELISM = 8
"""The most claims that are adopted at the same time."""
STEADY_SECONDS = 30.0
"""A claim is left to the controller if what forbids its release has not changed for so long."""
PASSING_SECONDS = 660.0
"""The same for what time alone ends: longer than every grace and every binding time."""


class Outcome(StrEnum):
    WOULD_FREE = "WouldFree"
    FREED = "Freed"
    LEFT = "Left"
    FAILED = "Failed"
    NOT_ORPHAN = "NotOrphan"
    """The claim is no orphan any more: a pod uses it, or a ClaimReservation names it."""


_WORDS = {Outcome.FREED: "freed", Outcome.NOT_ORPHAN: "no longer an orphan"}


@dataclass(slots=True)
class Candidate:
    """An orphan that the run found, and what became of it."""

    claim: ResourceClaim
    orphan: Orphan
    waits: Blocker | None = None
    """What the controller waits for."""
    since: float = 0.0
    """Since when it waits for that, on this process's monotonic clock."""
    outcome: Outcome | None = None
    note: str = ""
    """Why freeing the claim failed."""

    @property
    def key(self) -> ClaimKey:
        return ClaimKey(*self.claim.metadata.key)


@dataclass(slots=True)
class Reclaim:
    """One run over a namespace, or over all namespaces ('').

    Args:
        successor: does the controller's work if no controller runs.
        report: called with lines of progress.
        grace: how long a vanished pod may still be running, in seconds; None as for any claim.
        believing: whether managedFields prove that a hold is claimctl's.
    """

    client: Client
    clock: Clock
    namespace: str
    successor: Successor
    report: Callable[[str], None]
    grace: float | None = None
    believing: bool = False
    candidates: dict[ClaimKey, Candidate] = field(default_factory=dict)

    async def preview(self) -> tuple[Candidate, ...]:
        """Find the orphans and say which of them ``run`` would free; write nothing."""
        self._find(await self._scan())
        for candidate in self._candidates_left():
            candidate.outcome = Outcome.WOULD_FREE
        return self._all()

    async def run(self) -> tuple[Candidate, ...]:
        """Free the orphans that can be freed. A failure at one claim does not stop the others.

        Raises:
            CommandFailed: the CRDs are missing, or no controller runs and the caller may not do
                its work.
            KubeError: claims, pods or reservations could not be read.
        """
        seen = await self._scan()
        self._find(seen)
        await self._check_rights()
        start = self.clock.monotonic()
        end = start + PASSING_SECONDS
        try:
            while self._candidates_left() or (
                self._abandoned(seen) and self.clock.monotonic() < end
            ):
                await self._check_served()
                await self.successor.ensure()
                began = self.clock.monotonic()
                seen = await self._scan()
                took = self.clock.monotonic() - began
                await self._step(seen)
                if self._candidates_left() or self._abandoned(seen):
                    await self.clock.sleep(pause(self.clock.monotonic() - start, took))
        finally:
            await self.successor.close()
        return self._all()

    def _all(self) -> tuple[Candidate, ...]:
        return tuple(self.candidates[key] for key in sorted(self.candidates))

    def _candidates_left(self) -> list[Candidate]:
        return [candidate for candidate in self._all() if candidate.outcome is None]

    async def _check_rights(self) -> None:
        """Fail before anything is written, where the caller may not hand a claim over."""
        known: dict[str, str] = {}
        for candidate in self._candidates_left():
            place = candidate.key.namespace
            if place not in known:
                lacking = [it for it in RIGHTS if not await self.client.allowed(it, place)]
                known[place] = ", ".join(map(str, lacking))
            if known[place]:
                self._fail(candidate, f"not permitted: {known[place]}")

    def _abandoned(self, seen: ClaimScan) -> bool:
        """Whether an earlier run has adopted claims that are none of this run's: they are gone."""
        return not seen.adopted.keys() <= self.candidates.keys()

    async def _check_served(self) -> None:
        own = CLAIMRESERVATIONS
        if own.plural not in await Discovery(self.client).plurals(own.group, own.version):
            raise CommandFailed(f"the CRD of ClaimReservations is missing: {DEFINE}")

    async def _scan(self) -> ClaimScan:
        client, believing = self.client, self.believing
        return await scan_claims(client, self.clock, self.namespace, believing=believing)

    def _find(self, seen: ClaimScan) -> None:
        for scanned in seen.claims:
            orphan = judge_begun(scanned)
            if orphan is not None:
                candidate = Candidate(scanned.claim, orphan)
                self.candidates[candidate.key] = candidate
                self._note_blockers(candidate, orphan)

    def _note_blockers(self, candidate: Candidate, orphan: Orphan) -> None:
        # the first cause and message stay: a release changes the list, and thereby the cause
        candidate.orphan = replace(candidate.orphan, blockers=orphan.blockers)
        if orphan.blockers:
            candidate.outcome = Outcome.FAILED if orphan.failed else Outcome.LEFT

    # -- one step

    async def _step(self, seen: ClaimScan) -> None:
        """Adopt what is to be adopted, and note what has become of the others."""
        claims = {ClaimKey(*scanned.claim.metadata.key): scanned for scanned in seen.claims}
        wanted: list[tuple[Candidate, Orphan]] = []
        for candidate in self._candidates_left():
            adopted = seen.adopted.get(candidate.key, ())
            scanned = claims.get(candidate.key)
            if scanned is not None and scanned.claim.metadata.uid != candidate.claim.metadata.uid:
                scanned = None
            may = (unread for unread in seen.unreadable if _may_be_claim_of(unread, candidate))
            if (unread := next(may, None)) is not None:
                self._fail(candidate, f"not freed: {unread.describe()}")
            elif scanned is None:
                self._wait_or_finish(candidate, adopted, Outcome.FREED)
            elif (orphan := self._judge_again(candidate, scanned, adopted)) is not None:
                wanted.append((candidate, orphan))
        taken = {candidate.key for candidate, _ in wanted}
        # the claims of all others are gone, no orphans any more, or not to be freed; an adoption
        # that is handed over is being deleted already
        stale = (made for key, all_ in seen.adopted.items() if key not in taken for made in all_)
        with suppress(KubeError):  # the next step tries again
            await withdraw(self.client, stale)
        await in_parallel(self._adopt, wanted, PARALLELISM)

    def _judge_again(
        self, candidate: Candidate, scanned: ScannedClaim, adopted: Sequence[ClaimReservation]
    ) -> Orphan | None:
        """The orphan, if it is to be adopted; otherwise what has become of the claim is noted."""
        candidate.claim, orphan = scanned.claim, judge(scanned)
        handed_over = bool(adopted) and all(is_handed_over(it, scanned.claim) for it in adopted)
        if orphan is not None and not handed_over:
            self._note_blockers(candidate, orphan)
            return orphan if candidate.outcome is None else None
        # pods that waited for an entry of claimctl may use the claim by now
        ours = candidate.orphan.cause in (Cause.LISTED_AHEAD, Cause.ORPHANED_HOLD)
        free = scanned.claim.status.allocation is None or (ours and not scanned.reserved)
        outcome = Outcome.FREED if free else Outcome.NOT_ORPHAN
        waiting = bool(Consumers.of(scanned.live.pods).pending)
        self._wait_or_finish(candidate, adopted, outcome, passes=waiting)
        return None

    async def _adopt(self, wanted: tuple[Candidate, Orphan]) -> None:
        candidate, orphan = wanted
        try:
            await adopt(self.client, candidate.claim, orphan, self.grace)
        except (Conflict, NotFound, RequestTimeout, Unreachable):
            return  # another client was faster, or the write may have succeeded: look again
        except (KubeError, NameTaken) as error:
            self._fail(candidate, str(error))
            with suppress(KubeError):
                await give_up(self.client, candidate.claim, orphan)
        else:
            self._report(candidate, "handed over to the controller")

    def _wait_or_finish(
        self,
        candidate: Candidate,
        adopted: Sequence[ClaimReservation],
        outcome: Outcome,
        *,
        passes: bool = False,
    ) -> None:
        """Note the outcome when the controller is done, or what it waits for. Leave the claim to it
        if that has not changed for long.

        Args:
            passes: whether pods wait, which a scheduler may be binding for a while.
        """
        if not adopted:
            self._finish(candidate, outcome, _WORDS[outcome])
            return
        now, waits = self.clock.monotonic(), _waits(adopted)
        if waits != candidate.waits:
            candidate.waits, candidate.since = waits, now
            if waits.message:
                self._report(candidate, waits.message)
        patience = PASSING_SECONDS if passes or waits.reason in PASSING else STEADY_SECONDS
        if now - candidate.since >= patience:
            candidate.orphan = replace(candidate.orphan, blockers=(waits,))
            candidate.outcome = Outcome.LEFT

    def _fail(self, candidate: Candidate, note: str) -> None:
        candidate.note = note
        self._finish(candidate, Outcome.FAILED, f"failed: {note}")

    def _finish(self, candidate: Candidate, outcome: Outcome, what: str) -> None:
        candidate.outcome = outcome
        self._report(candidate, what)

    def _report(self, candidate: Candidate, what: str) -> None:
        self.report(f"{candidate.key}: {what}")


def _waits(adopted: Iterable[ClaimReservation]) -> Blocker:
    """What the controller says about the release: what keeps it from its work comes first."""
    for reservation in adopted:
        for kind in (ConditionType.READY, ConditionType.RELEASED):
            condition = find_condition(reservation.status.conditions, kind)
            if condition is not None and condition.status == "False":
                # a later version may have other reasons
                known = condition.reason in set(Reason)
                reason = Reason(condition.reason) if known else Reason.CANNOT_TELL
                return Blocker(reason, condition.message)
    return Blocker(Reason.RELEASING, "")


def _may_be_claim_of(unread: Unreadable, candidate: Candidate) -> bool:
    """Whether the unreadable object may be the candidate's claim."""
    return unread.resource.plural == RESOURCECLAIMS.plural and (
        unread.uid == candidate.claim.metadata.uid
        or (not unread.identified and unread.may_be_in(candidate.key.namespace))
    )
