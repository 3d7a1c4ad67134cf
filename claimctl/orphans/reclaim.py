"""Freeing the claims that are left over, by the hand of whoever asks.

Nobody watched before, so the process watches first: a claim is freed only when it did not change,
and had no consumer, for the settle time and then for the whole grace; all claims wait together.
The deallocation is one write, the finalizer another. A mark on the claim, put there just before,
says whose they are, so that another run can finish what a crash left between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from claimctl.controller.keys import ClaimKey
from claimctl.controller.patches import finalizers_patch, list_patch
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, KubeError, NotFound, RequestTimeout, Unreachable
from claimctl.orphans.judge import judge
from claimctl.orphans.model import Orphan, ScannedClaim, WatchTimes
from claimctl.orphans.scan import Scan, survey
from claimctl.reservation.decision import Blocker, WriteList
from claimctl.reservation.reasons import Reason
from claimctl.reservation.release.protocol import CLAIM_FINALIZER
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import RELEASE_ANNOTATION
from claimctl.wire.resources import RESOURCECLAIMS
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

CHANGES = 4
"""How often a claim may change, or a write fail to arrive, before the claim is left alone."""
TELL_SECONDS = 60.0
LEAST_SECONDS = 0.1
"""Between two looks: what is left of a wait may be less than the clock can tell."""


class Outcome(StrEnum):
    WOULD_FREE = "WouldFree"
    FREED = "Freed"
    LEFT = "Left"
    FAILED = "Failed"
    SETTLED = "NotLeftOver"
    """It changed meanwhile: somebody uses it, or freed it."""


@dataclass(slots=True)
class Candidate:
    """A claim that was found left over, and what became of it."""

    claim: ResourceClaim
    leftover: Orphan
    since: float
    """When its present version was first seen."""
    quiet_since: float | None = None
    due: float = 0.0
    """When to look again."""
    changes: int = 0
    deallocated: bool = False
    outcome: Outcome | None = None
    note: str = ""
    """Why it failed."""

    @property
    def key(self) -> ClaimKey:
        return ClaimKey.of(self.claim.metadata)

    @property
    def version(self) -> str:
        return self.claim.metadata.resource_version


@dataclass(slots=True)
class Reclaim:
    """One run over a namespace, or over all of them ('').

    Args:
        patience: how long to settle and how long the grace is.
        tell: is given lines of progress.
    """

    client: Client
    clock: Clock
    namespace: str
    patience: WatchTimes
    tell: Callable[[str], None]
    candidates: dict[ClaimKey, Candidate] = field(default_factory=dict)

    async def preview(self) -> tuple[Candidate, ...]:
        """What is left over and would be freed; nothing is written.

        Raises:
            KubeError: the claims cannot be looked at.
        """
        await self._find()
        for each in self._open():
            each.outcome = Outcome.WOULD_FREE
        return self._all()

    async def run(self) -> tuple[Candidate, ...]:
        """Free what can be freed; trouble with one claim does not stop the others.

        Raises:
            KubeError: the claims cannot be looked at.
        """
        await self._find()
        for each in self._open():
            await self._guarded(each, self._try_rights(each))
        while waiting := self._open():
            await self._wait(min(each.due for each in waiting), len(waiting))
            await self._round(waiting)
        return self._all()

    def _all(self) -> tuple[Candidate, ...]:
        return tuple(self.candidates[key] for key in sorted(self.candidates))

    def _open(self) -> list[Candidate]:
        return [each for each in self._all() if each.outcome is None]

    # -- looking

    async def _find(self) -> None:
        seen = await survey(self.client, self.clock, self.namespace)
        for sight in seen.sights:
            found = judge(sight, self.patience)
            if found is not None:
                candidate = Candidate(sight.claim, found, seen.began)
                self.candidates[candidate.key] = candidate
                self._note(candidate, found)

    async def _round(self, waiting: Iterable[Candidate]) -> None:
        keys = frozenset(each.key for each in waiting)
        seen = await survey(self.client, self.clock, self.namespace, keys)
        sights = {ClaimKey.of(sight.claim.metadata): sight for sight in seen.sights}
        for each in waiting:
            sight = sights.get(each.key)
            unread = next((one for one in seen.unreadable if _may_be(one, each)), None)
            if sight is None and unread is not None:
                each.outcome, each.note = Outcome.FAILED, unread.told()
            elif sight is None or sight.claim.metadata.uid != each.claim.metadata.uid:
                self._close(each)
            else:
                await self._guarded(each, self._advance(each, sight, seen))

    async def _advance(self, candidate: Candidate, sight: ScannedClaim, seen: Scan) -> None:
        """Judge a candidate anew and make its next write, if it is time for that."""
        found = self._judged(candidate, sight, seen)
        if found is None:
            if not sight.reserved:
                await self._withdraw_mark(sight.claim)
            self._close(candidate)
            return
        self._note(candidate, found)
        if found.against:
            await self._withdraw_mark(sight.claim)
        elif found.write is not None:
            await _uninterrupted(self._write(candidate, found))

    def _judged(self, candidate: Candidate, sight: ScannedClaim, seen: Scan) -> Orphan | None:
        if sight.claim.metadata.resource_version != candidate.version:
            candidate.changes += 1
            candidate.since, candidate.quiet_since = seen.began, None
        candidate.claim = sight.claim
        age, quiet = seen.began - candidate.since, candidate.quiet_since
        found = judge(
            sight,
            replace(
                self.patience,
                version_age=age,
                quiet_age=self.clock.monotonic() - quiet if quiet is not None else 0.0,
            ),
        )
        if found is None or found.against or age < self.patience.settle_seconds:
            candidate.quiet_since = None
        elif quiet is None:
            candidate.quiet_since = seen.listed
        return found

    def _note(self, candidate: Candidate, found: Orphan) -> None:
        if not found.against and candidate.changes > CHANGES:
            text = "somebody else changes the claim again and again: run again later"
            found = replace(found, against=(Blocker(Reason.FIGHTING_WRITER, text),))
        # What it was left over as is told to the end, although our own fence changes that.
        first = candidate.leftover
        candidate.leftover = replace(found, cause=first.cause, message=first.message)
        if found.against:
            candidate.outcome = Outcome.FAILED if found.failed else Outcome.LEFT
        elif found.wait is not None:
            candidate.due = self.clock.monotonic() + max(found.wait.after or 0.0, LEAST_SECONDS)

    def _close(self, candidate: Candidate) -> None:
        """It is no leftover any more: by our own write, or by somebody else's."""
        candidate.outcome = Outcome.FREED if candidate.deallocated else Outcome.SETTLED
        self._tell(candidate, "freed" if candidate.deallocated else "not left over any more")

    # -- waiting

    async def _wait(self, until: float, count: int) -> None:
        what = "1 claim is" if count == 1 else f"{count} claims are"
        while (left := until - self.clock.monotonic()) > 0:
            if left >= 0.5:
                self.tell(f"{what} watched for {left:.0f} s more before anything is written")
            await self.clock.sleep(min(left, TELL_SECONDS))

    # -- writing

    async def _guarded(self, candidate: Candidate, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except NotFound:
            self._close(candidate)
        except (Conflict, RequestTimeout, Unreachable):
            # Somebody else wrote, or our own write may have arrived: look afresh.
            candidate.changes += 1
            candidate.due = self.clock.monotonic()
        except KubeError as error:
            candidate.outcome, candidate.note = Outcome.FAILED, str(error)
            self._tell(candidate, f"failed: {error}")

    async def _try_rights(self, candidate: Candidate) -> None:
        """A dry run of the writes to come: whoever may not make them need not wait for it."""
        claim = candidate.claim
        await self._patch(claim, _mark(claim), dry_run=True)
        if claim.status.allocation is not None:
            free = list_patch((), deallocate=True)
            await self._patch(claim, free, "status", dry_run=True)

    async def _write(self, candidate: Candidate, found: Orphan) -> None:
        if not isinstance(found.write, WriteList):
            await self._take_finalizer(candidate, candidate.claim)
        elif found.write.deallocate:
            await self._deallocate(candidate)
        else:
            patch = list_patch(found.write.reserved_for, deallocate=False)
            candidate.claim = await self._patch(candidate.claim, patch, "status")
            candidate.since, candidate.quiet_since = self.clock.monotonic(), None
            candidate.due = candidate.since + self.patience.settle_seconds
            self._tell(candidate, "its dead holders are taken out")

    async def _deallocate(self, candidate: Candidate) -> None:
        """Each write under the version that the one before made: whoever comes between wins."""
        claim = candidate.claim
        if claim.metadata.annotation(RELEASE_ANNOTATION) != claim.metadata.uid:
            claim = candidate.claim = await self._patch(claim, _mark(claim))
        claim = await self._patch(claim, list_patch((), deallocate=True), "status")
        candidate.deallocated = True
        self._tell(candidate, "deallocated")
        await self._take_finalizer(candidate, claim)

    async def _take_finalizer(self, candidate: Candidate, claim: ResourceClaim) -> None:
        patch = finalizers_patch(claim.metadata.finalizers, remove=CLAIM_FINALIZER)
        patch["metadata"]["annotations"] = {RELEASE_ANNOTATION: None}
        await self._patch(claim, patch)
        candidate.deallocated = True
        self._close(candidate)

    async def _withdraw_mark(self, claim: ResourceClaim) -> None:
        """Of a claim that is not freed after all; it does no harm where that fails."""
        if claim.metadata.annotation(RELEASE_ANNOTATION) == claim.metadata.uid:
            with suppress(KubeError):
                await self._patch(claim, {"metadata": {"annotations": {RELEASE_ANNOTATION: None}}})

    async def _patch(
        self,
        claim: ResourceClaim,
        patch: Mapping[str, Any],
        subresource: str = "",
        *,
        dry_run: bool = False,
    ) -> ResourceClaim:
        meta = claim.metadata
        return await self.client.merge_patch(
            RESOURCECLAIMS,
            meta.name,
            patch,
            meta.namespace,
            resource_version=meta.resource_version,
            subresource=subresource,
            dry_run=dry_run,
        )

    def _tell(self, candidate: Candidate, what: str) -> None:
        self.tell(f"{candidate.key}: {what}")


def _may_be(found: Unreadable, candidate: Candidate) -> bool:
    """Whether what cannot be read may be the candidate's claim."""
    return found.resource.plural == RESOURCECLAIMS.plural and (
        found.uid == candidate.claim.metadata.uid
        or (not found.identified and found.may_be_in(candidate.key.namespace))
    )


def _mark(claim: ResourceClaim) -> dict[str, Any]:
    return {"metadata": {"annotations": {RELEASE_ANNOTATION: claim.metadata.uid}}}


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Carry a few writes to their end, also when we are asked to stop in between."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise
