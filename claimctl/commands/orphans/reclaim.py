"""Free orphans with the rights of the caller.

No process has watched the claims before, so this one watches first. It frees a claim only if the
claim did not change and had no consumer for the settle time and then for the whole grace. All
claims wait at the same time.

The deallocation is one write, and the removal of the finalizer is another. Just before both, the
claim gets an annotation as a mark of claimctl. If the process crashes between the two writes, the
next run sees the mark and removes the finalizer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from claimctl.commands.orphans.ahead import is_guarded
from claimctl.commands.orphans.judge import judge
from claimctl.commands.orphans.model import Cause, Orphan, ScannedClaim, WatchTimes
from claimctl.commands.orphans.scan import ClaimScan, scan_claims
from claimctl.controller.keys import ClaimKey
from claimctl.kube.claim_lists import change_list, without_finalizer
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, KubeError, NotFound, RequestTimeout, Unreachable
from claimctl.reservation.facts.decision import Blocker, WriteList
from claimctl.reservation.facts.reasons import Reason
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import RELEASE_ANNOTATION
from claimctl.wire.resources import RESOURCECLAIMS
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

MAX_CHANGES = 4
"""After more changes of a claim, or failed writes to it, the run leaves the claim alone."""
PROGRESS_SECONDS = 60.0
"""Time between two progress lines."""
MIN_WAIT_SECONDS = 0.1
"""Least time between two scans: the rest of a wait may be less than the clock's resolution."""


class Outcome(StrEnum):
    WOULD_FREE = "WouldFree"
    FREED = "Freed"
    LEFT = "Left"
    FAILED = "Failed"
    NOT_ORPHAN = "NotOrphan"
    """The claim is no orphan any more: a pod uses it, or another client freed it."""


@dataclass(slots=True)
class Candidate:
    """An orphan that the run found, and what became of it. Times are of the monotonic clock."""

    claim: ResourceClaim
    orphan: Orphan
    since: float
    """When the claim's present version was first seen."""
    quiet_since: float | None = None
    """When a scan first showed the settled claim without a consumer."""
    due: float = 0.0
    """When to scan the claim again."""
    closed_since: float | None = None
    """When a scan first showed the guard in the list."""
    changes: int = 0
    freed: bool = False
    """Whether this run deallocated the claim, or took the last entry of claimctl out."""
    outcome: Outcome | None = None
    note: str = ""
    """Why freeing the claim failed."""

    @property
    def key(self) -> ClaimKey:
        return ClaimKey(*self.claim.metadata.key)

    @property
    def version(self) -> str:
        return self.claim.metadata.resource_version


@dataclass(slots=True)
class Reclaim:
    """One run over a namespace, or over all namespaces ('').

    Args:
        times: the settle time, the grace and the binding times.
        report: called with lines of progress.
        causes: only orphans of these causes are looked at; None means all.
        believing: whether managedFields prove that a hold is claimctl's.
    """

    client: Client
    clock: Clock
    namespace: str
    times: WatchTimes
    report: Callable[[str], None]
    causes: frozenset[Cause] | None = None
    believing: bool = False
    candidates: dict[ClaimKey, Candidate] = field(default_factory=dict)

    async def preview(self) -> tuple[Candidate, ...]:
        """Find the orphans and say which of them ``run`` would free; write nothing."""
        await self._find()
        for candidate in self._candidates_left():
            candidate.outcome = Outcome.WOULD_FREE
        return self._all()

    async def run(self) -> tuple[Candidate, ...]:
        """Free the orphans that can be freed. A failure at one claim does not stop the others; one
        to read claims, pods or reservations is raised."""
        await self._find()
        for candidate in self._candidates_left():
            await self._guard(candidate, self._check_rights(candidate))
        while waiting := self._candidates_left():
            await self._wait(min(candidate.due for candidate in waiting), len(waiting))
            await self._round(waiting)
        return self._all()

    def _all(self) -> tuple[Candidate, ...]:
        return tuple(self.candidates[key] for key in sorted(self.candidates))

    def _candidates_left(self) -> list[Candidate]:
        return [candidate for candidate in self._all() if candidate.outcome is None]

    # -- scanning

    async def _scan(self, only: frozenset[ClaimKey] | None = None) -> ClaimScan:
        client, believing = self.client, self.believing
        return await scan_claims(client, self.clock, self.namespace, only, believing=believing)

    async def _find(self) -> None:
        seen = await self._scan()
        for scanned in seen.claims:
            orphan = judge(scanned, self.times)
            if orphan is not None and (self.causes is None or orphan.cause in self.causes):
                candidate = Candidate(scanned.claim, orphan, seen.began)
                self.candidates[candidate.key] = candidate
                self._record(candidate, orphan)

    async def _round(self, waiting: Iterable[Candidate]) -> None:
        keys = frozenset(candidate.key for candidate in waiting)
        seen = await self._scan(keys)
        claims = {ClaimKey(*scanned.claim.metadata.key): scanned for scanned in seen.claims}
        for candidate in waiting:
            scanned = claims.get(candidate.key)
            may = (unread for unread in seen.unreadable if _may_be_claim_of(unread, candidate))
            unread = next(may, None)
            if scanned is None and unread is not None:
                candidate.outcome, candidate.note = Outcome.FAILED, unread.describe()
            elif scanned is None or scanned.claim.metadata.uid != candidate.claim.metadata.uid:
                self._finish(candidate)
            else:
                await self._guard(candidate, self._advance(candidate, scanned, seen))

    async def _advance(self, candidate: Candidate, scanned: ScannedClaim, seen: ClaimScan) -> None:
        """Judge a candidate again, and make its next write if nothing blocks it."""
        orphan = self._judge_again(candidate, scanned, seen)
        if orphan is None:
            if not scanned.reserved:
                await self._remove_mark(scanned.claim)
            self._finish(candidate)
            return
        self._record(candidate, orphan)
        if orphan.blockers:
            await self._remove_mark(scanned.claim)
        elif orphan.write is not None:
            await _finish_even_if_cancelled(self._write(candidate, orphan))

    def _judge_again(
        self, candidate: Candidate, scanned: ScannedClaim, seen: ClaimScan
    ) -> Orphan | None:
        if scanned.claim.metadata.resource_version != candidate.version:
            candidate.changes += 1
            candidate.since, candidate.quiet_since = seen.began, None
        candidate.claim = scanned.claim
        if candidate.closed_since is None and is_guarded(scanned.claim):
            candidate.closed_since = seen.began
        age, quiet = seen.began - candidate.since, candidate.quiet_since
        closed = candidate.closed_since
        times = replace(
            self.times,
            version_age=age,
            closed_age=seen.began - closed if closed is not None else 0.0,
            quiet_age=self.clock.monotonic() - quiet if quiet is not None else 0.0,
        )
        orphan = judge(scanned, times)
        if orphan is None or orphan.blockers or age < self.times.settle_seconds:
            candidate.quiet_since = None
        elif quiet is None:
            candidate.quiet_since = seen.listed
        return orphan

    def _record(self, candidate: Candidate, orphan: Orphan) -> None:
        fights = candidate.changes > MAX_CHANGES and not is_guarded(candidate.claim)
        if not orphan.blockers and fights:
            text = "another client keeps changing the claim: run again later"
            orphan = replace(orphan, blockers=(Blocker(Reason.FIGHTING_WRITER, text),))
        # Keep the first cause and message: our own fence changes the list, and thereby the cause.
        first = candidate.orphan
        candidate.orphan = replace(orphan, cause=first.cause, message=first.message)
        if orphan.blockers:
            candidate.outcome = Outcome.FAILED if orphan.failed else Outcome.LEFT
        elif orphan.wait is not None:
            candidate.due = self.clock.monotonic() + max(orphan.wait.after or 0.0, MIN_WAIT_SECONDS)

    def _finish(self, candidate: Candidate) -> None:
        """Close a candidate that is no orphan any more, by our own or another client's write."""
        candidate.outcome = Outcome.FREED if candidate.freed else Outcome.NOT_ORPHAN
        self._report(candidate, "freed" if candidate.freed else "no longer an orphan")

    # -- waiting

    async def _wait(self, until: float, count: int) -> None:
        what = "1 claim is" if count == 1 else f"{count} claims are"
        while (left := until - self.clock.monotonic()) > 0:
            if left >= 0.5:
                self.report(f"{what} watched for {left:.0f} s more before anything is written")
            await self.clock.sleep(min(left, PROGRESS_SECONDS))

    # -- writing

    async def _guard(self, candidate: Candidate, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except NotFound:
            self._finish(candidate)
        except (Conflict, RequestTimeout, Unreachable):
            # Another client wrote the claim, or our write may have succeeded: scan again.
            candidate.changes += 1
            candidate.due = self.clock.monotonic()
        except KubeError as error:
            candidate.outcome, candidate.note = Outcome.FAILED, str(error)
            self._report(candidate, f"failed: {error}")

    async def _check_rights(self, candidate: Candidate) -> None:
        """Try the coming writes as dry runs, so that a lack of rights shows before the wait."""
        claim = candidate.claim
        await self._mark(claim, claim.metadata.uid, dry_run=True)
        if claim.status.allocation is not None:
            await self._change_list(claim, deallocate=True, dry_run=True)

    async def _write(self, candidate: Candidate, orphan: Orphan) -> None:
        if not isinstance(orphan.write, WriteList):
            await self._remove_finalizer(candidate, candidate.claim)
        elif orphan.write.deallocate:
            await self._deallocate(candidate)
        else:
            candidate.claim = await self._change_list(candidate.claim, orphan.write.reserved_for)
            candidate.since, candidate.quiet_since = self.clock.monotonic(), None
            candidate.due = candidate.since + self.times.settle_seconds
            candidate.freed = orphan.cause is Cause.LISTED_AHEAD and not is_guarded(candidate.claim)
            done = "references removed from its list"
            if is_guarded(candidate.claim):
                done = "waiting pods taken out of its list; a guard keeps it allocated meanwhile"
            elif candidate.freed:
                done = "the guard is taken out of its list; its users keep it"
            self._report(candidate, done)

    async def _deallocate(self, candidate: Candidate) -> None:
        """Mark, deallocate, remove the finalizer. Each write carries the version that the write
        before it made. If another client writes in between, our next write fails with a conflict.
        """
        claim = candidate.claim
        if claim.metadata.annotation(RELEASE_ANNOTATION) != claim.metadata.uid:
            claim = candidate.claim = await self._mark(claim, claim.metadata.uid)
        claim = await self._change_list(claim, deallocate=True)
        candidate.freed = True
        self._report(candidate, "deallocated")
        await self._remove_finalizer(candidate, claim)

    async def _remove_finalizer(self, candidate: Candidate, claim: ResourceClaim) -> None:
        patch = without_finalizer(claim.metadata)
        if claim.metadata.annotation(RELEASE_ANNOTATION) is not None:
            mark = RELEASE_ANNOTATION.replace("/", "~1")
            patch.append({"op": "remove", "path": f"/metadata/annotations/{mark}"})
        await self.client.json_patch(RESOURCECLAIMS, claim.metadata, patch)
        candidate.freed = True
        self._finish(candidate)

    async def _remove_mark(self, claim: ResourceClaim) -> None:
        """Remove the mark of a claim that is not freed after all. A mark that stays is harmless."""
        if claim.metadata.annotation(RELEASE_ANNOTATION) == claim.metadata.uid:
            with suppress(KubeError):
                await self._mark(claim, None)

    async def _change_list(
        self, claim: ResourceClaim, wanted: Iterable[Reference] = (), **options: bool
    ) -> ResourceClaim:
        return await change_list(self.client, RESOURCECLAIMS, claim, wanted, **options)

    async def _mark(
        self, claim: ResourceClaim, uid: str | None, *, dry_run: bool = False
    ) -> ResourceClaim:
        """Set claimctl's mark, which is the claim's UID; None removes it."""
        meta, patch = claim.metadata, {"metadata": {"annotations": {RELEASE_ANNOTATION: uid}}}
        return await self.client.merge_patch(RESOURCECLAIMS, meta, patch, dry_run=dry_run)

    def _report(self, candidate: Candidate, what: str) -> None:
        self.report(f"{candidate.key}: {what}")


def _may_be_claim_of(unread: Unreadable, candidate: Candidate) -> bool:
    """Whether the unreadable object may be the candidate's claim."""
    return unread.resource.plural == RESOURCECLAIMS.plural and (
        unread.uid == candidate.claim.metadata.uid
        or (not unread.identified and unread.may_be_in(candidate.key.namespace))
    )


async def _finish_even_if_cancelled(work: Coroutine[Any, Any, None]) -> None:
    """Finish the writes even if this task is cancelled in between."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise
