"""The documents of the commands of a downgrade, and the table that is made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import structs

from claimctl.cli.documents import Document, Names, Part, by_names, says
from claimctl.cli.errors import ExitCode
from claimctl.cli.objects import CLAIM, resource_name
from claimctl.cli.output import Table, columns
from claimctl.commands.downgrade.following import PlanResult
from claimctl.downgrade.records import PlanPhase, RecordState
from claimctl.downgrade.under_way import is_held_by_pods_alone
from claimctl.text import counted
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import ClaimName, DowngradedClaim

WOULD: dict[str, str] = {
    RecordState.EXPANDED: "WouldExpand",
    RecordState.RESTORED: "WouldRestore",
}
"""What a dry run calls a state."""
EXPANDED = {RecordState.EXPANDED, WOULD[RecordState.EXPANDED]}
RESTORED = {RecordState.RESTORED, WOULD[RecordState.RESTORED]}
LEFT = {RecordState.REFUSED, RecordState.FAILED}


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
    held_by_pods_alone: Annotated[
        bool, says("the workload does not hold it any more: a scale to 0 loses its devices")
    ] = False


class DowngradeReport(Document, frozen=True, kw_only=True):
    """``claimctl downgrade prepare`` and ``downgrade restore``"""

    dry_run: bool
    carried_out_by: str | None
    namespaces: Names = ()
    claim_selector: str = ""
    skip: tuple[ClaimName, ...] = ()
    next_step: str | None = None
    todo: Annotated[str | None, says("what to do in the next step")] = None
    old_pod_groups: Annotated[
        int | None, says("before an upgrade: claimctl's PodGroups of the version that goes")
    ] = None
    foreign_objects: Annotated[
        Names, says("before an upgrade: objects of others that have to be gone")
    ] = ()
    phase: str
    total: int
    done: int
    claims: tuple[ClaimOutcome, ...]

    def count(self, states: Iterable[str]) -> int:
        """How many claims are in one of these states."""
        wanted = set(states)
        return sum(claim.state in wanted for claim in self.claims)


def document(
    result: PlanResult, claims: Iterable[DowngradedClaim] | None = None, **scope: Any
) -> DowngradeReport:
    """The report.

    Args:
        claims: the records to report; None means all of the plan.
        scope: the fields that say what the plan was about.
    """
    status = result.status
    shown = status.claims if claims is None else claims
    return DowngradeReport(
        dry_run=not result.by,
        carried_out_by=result.by or None,
        **scope,
        phase=status.phase,
        total=status.total,
        done=status.done,
        claims=tuple(_outcome(claim, dry_run=not result.by) for claim in shown),
    )


def _outcome(claim: DowngradedClaim, *, dry_run: bool) -> ClaimOutcome:
    state = WOULD.get(claim.state, claim.state) if dry_run else claim.state
    outcome = by_names(structs.replace(claim, state=state), ClaimOutcome)
    return structs.replace(outcome, held_by_pods_alone=is_held_by_pods_alone(claim))


def prepared_code(report: DowngradeReport) -> int:
    """The exit code of a preparation."""
    if report.phase == PlanPhase.FAILED or report.count({RecordState.FAILED}):
        return ExitCode.FAILED
    return ExitCode.OK if report.phase == PlanPhase.PREPARED else ExitCode.FINDINGS


def table(report: DowngradeReport, empty: str) -> Table:
    titles = ("NAMESPACE", "CLAIM", "WORKLOAD", "STATE", "PODS", "REASON", "MESSAGE")
    return Table(
        columns=columns(*titles, text=("MESSAGE",), drop=("PODS", "WORKLOAD")),
        rows=tuple(map(_row, report.claims)),
        names=tuple(resource_name(CLAIM, claim.name) for claim in report.claims),
        empty=empty,
    )


def _row(claim: ClaimOutcome) -> tuple[str, ...]:
    holders = ",".join(f"{entry.resource}/{entry.name}" for entry in claim.workload_references)
    message = claim.message or loss(claim)
    state = (claim.state, str(claim.pods), claim.reason, message)
    return (claim.namespace, claim.name, holders, *state)


def loss(claim: ClaimOutcome) -> str:
    """What the preparation ends for this claim; '' if nothing."""
    if not claim.held_by_pods_alone:
        return ""
    would, pods = claim.state in WOULD.values(), counted(claim.pods, "pod")
    verb = "would hold" if would else "holds" if claim.pods == 1 else "hold"
    return f"only its {pods} {verb} it, not the workload: a scale to 0 loses its devices"
