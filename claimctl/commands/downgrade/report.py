"""Shared by the commands of a downgrade: options, the progress bar, the table, the document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from claimctl.cli.errors import CommandFailed
from claimctl.cli.objects import CLAIM, resource_name
from claimctl.cli.output import Table, columns
from claimctl.cli.progress import progress
from claimctl.commands.downgrade.documents import ClaimOutcome, DowngradeReport
from claimctl.downgrade.ledger import Progress
from claimctl.wire.reservations import DowngradedClaim, DowngradePlanStatus


@dataclass(frozen=True, slots=True)
class Result:
    """``by``: who carried the plan out, "controller" or "command"; empty for a dry run."""

    status: DowngradePlanStatus
    by: str = ""


@asynccontextmanager
async def time_limit(seconds: float | None, *, dry_run: bool) -> AsyncIterator[None]:
    """End the work within when the time of ``--timeout`` is over.

    Raises:
        CommandFailed: the time is over.
    """

    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        stays = "" if dry_run else "; the plan stays, and another run continues it"
        raise CommandFailed(f"--timeout: not finished after {seconds:g} s{stays}") from None


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Show how many claims a plan is through with."""
    with progress("waiting for the controller") as line:

        def show(status: DowngradePlanStatus) -> None:
            if status.phase:
                line.count(f"{status.phase}, claims", status.done, status.total)

        yield show


def table(result: Result, claims: Iterable[DowngradedClaim], empty: str) -> Table:

    claims = tuple(claims)
    titles = ("NAMESPACE", "CLAIM", "WORKLOAD", "STATE", "PODS", "REASON", "MESSAGE")
    rows = tuple(
        (
            one.namespace,
            one.name,
            ",".join(f"{each.resource}/{each.name}" for each in one.workload_references),
            _state(one, result),
            str(one.pods),
            one.reason,
            one.message,
        )
        for one in claims
    )
    shown = columns(*titles, text=("MESSAGE",), drop=("PODS", "WORKLOAD"))
    names = tuple(resource_name(CLAIM, one.name) for one in claims)
    return Table(columns=shown, rows=rows, names=names, empty=empty)


def _state(one: DowngradedClaim, result: Result) -> str:
    would = {"Expanded": "WouldExpand", "Restored": "WouldRestore"}
    return one.state if result.by else would.get(one.state, one.state)


def document(result: Result, **scope: Any) -> DowngradeReport:
    """The report; ``scope`` has the fields that say what the plan was about."""
    status = result.status
    return DowngradeReport(
        dry_run=not result.by,
        carried_out_by=result.by or None,
        **scope,
        phase=status.phase,
        total=status.total,
        done=status.done,
        claims=tuple(
            ClaimOutcome(
                namespace=claim.namespace,
                name=claim.name,
                uid=claim.uid,
                state=_state(claim, result),
                reason=claim.reason,
                message=claim.message,
                pods=claim.pods,
                workload_references=claim.workload_references,
                replaced_references=claim.replaced_references,
            )
            for claim in status.claims
        ),
    )
