"""Shared by the commands of a downgrade: how a plan is carried out, the table, the documents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from msgspec import field
from msgspec.structs import replace

from claimctl.cli.documents import Document, Names, Part, by_names
from claimctl.cli.errors import CommandFailed, UsageError
from claimctl.cli.objects import CLAIM, resource_name
from claimctl.cli.output import Table, columns
from claimctl.cli.progress import progress
from claimctl.cli.session import Session
from claimctl.commands.downgrade.flags import PlanFlags
from claimctl.controller.dialect import DialectUnknown
from claimctl.downgrade import plans
from claimctl.downgrade.plans import NoSuchNamespace, PlanRefused
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import (
    ClaimName,
    DowngradedClaim,
    DowngradePlan,
    DowngradePlanStatus,
)


class ClaimOutcome(Part, frozen=True):
    namespace: str
    name: str
    uid: str
    state: str
    reason: str
    message: str
    pods: int
    workload_references: tuple[Reference, ...]
    replaced_references: tuple[Reference, ...]


class DowngradeReport(Document, frozen=True, kw_only=True):
    """``claimctl downgrade prepare`` and ``downgrade restore``"""

    dry_run: bool
    carried_out_by: str | None
    namespaces: Names = ()
    claim_selector: str = ""
    skip: tuple[ClaimName, ...] = ()
    next_step: str | None = None
    phase: str
    total: int
    done: int
    claims: tuple[ClaimOutcome, ...]


class ComponentState(Part, frozen=True):
    part: str = field(name="component")
    node: str
    switch: str = field(name="feature")
    now: str
    refuses: bool


class StandingClaim(Part, frozen=True):
    namespace: str
    name: str
    uid: str
    standing: str = field(name="state")
    reason: str
    message: str
    command: str
    pods: int
    unlisted: int


class DowngradeStatus(Document, frozen=True):
    """``claimctl downgrade status``"""

    step: str
    todo: str
    command: str
    clear: bool
    ready: int = field(name="readyClaims")
    components: tuple[ComponentState, ...]
    claims: tuple[StandingClaim, ...]


@dataclass(frozen=True, slots=True)
class PlanResult:
    """``by``: who carried the plan out, "controller" or "command"; empty for a dry run."""

    status: DowngradePlanStatus
    by: str = ""


@asynccontextmanager
async def time_limit(flags: PlanFlags) -> AsyncIterator[None]:
    """End the work within when the time of ``--timeout`` is over, and report why it cannot be done.

    Raises:
        CommandFailed: the time is over, there is another plan, the controller does not carry this
            one out, or the dialect of the cluster is not known.
        UsageError: a namespace does not exist.
    """
    try:
        async with asyncio.timeout(flags.timeout):
            yield
    except TimeoutError:
        stays = "" if flags.dry_run else "; the plan stays, and another run continues it"
        raise CommandFailed(f"--timeout: not finished after {flags.timeout:g} s{stays}") from None
    except (PlanRefused, DialectUnknown) as refused:
        raise CommandFailed(str(refused)) from None
    except NoSuchNamespace as missing:
        raise UsageError(f"--namespace: the cluster has no namespace {missing}") from None


async def carried_out(session: Session, plan: DowngradePlan, dialect: str | None) -> PlanResult:
    """Wait until the plan is carried out, and show how many claims it is through with.

    Args:
        dialect: None: a controller carries the plan out. Otherwise this process does, in this
            dialect, which a way back needs.
    """
    client = session.client
    with progress("waiting for the controller") as line:

        def show(status: DowngradePlanStatus) -> None:
            if status.phase:
                line.count(f"{status.phase}, claims", status.done, status.total)

        if dialect is None:
            return PlanResult(await plans.follow(client, plan, show), "controller")
        status = await plans.carry_out(client, plan, session.clock, show, dialect)
        return PlanResult(status, "command")


def table(result: PlanResult, claims: Iterable[DowngradedClaim], empty: str) -> Table:
    claims = tuple(claims)
    titles = ("NAMESPACE", "CLAIM", "WORKLOAD", "STATE", "PODS", "REASON", "MESSAGE")
    rows = []
    for it in claims:
        holders = ",".join(f"{entry.resource}/{entry.name}" for entry in it.workload_references)
        state = (_state(it, result), str(it.pods), it.reason, it.message)
        rows.append((it.namespace, it.name, holders, *state))
    shown = columns(*titles, text=("MESSAGE",), drop=("PODS", "WORKLOAD"))
    names = tuple(resource_name(CLAIM, claim.name) for claim in claims)
    return Table(columns=shown, rows=tuple(rows), names=names, empty=empty)


def _state(claim: DowngradedClaim, result: PlanResult) -> str:
    would = {"Expanded": "WouldExpand", "Restored": "WouldRestore"}
    return claim.state if result.by else would.get(claim.state, claim.state)


def document(result: PlanResult, **scope: Any) -> DowngradeReport:
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
            by_names(replace(claim, state=_state(claim, result)), ClaimOutcome)
            for claim in status.claims
        ),
    )
