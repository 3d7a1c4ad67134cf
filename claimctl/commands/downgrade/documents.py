"""The documents of the commands of a downgrade."""

from __future__ import annotations

from claimctl.cli.documents import Document, Names, Part
from claimctl.downgrade.status import Report
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import ClaimName


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
    """``claimctl downgrade-prepare`` and ``downgrade-restore``"""

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
    component: str
    node: str
    feature: str
    now: str
    refuses: bool


class StandingClaim(Part, frozen=True):
    namespace: str
    name: str
    uid: str
    state: str
    reason: str
    message: str
    command: str
    pods: int
    unlisted: int


class DowngradeStatus(Document, frozen=True):
    """``claimctl downgrade-status``"""

    step: str
    todo: str
    command: str
    clear: bool
    ready_claims: int
    components: tuple[ComponentState, ...]
    claims: tuple[StandingClaim, ...]


def status_of(report: Report) -> DowngradeStatus:
    return DowngradeStatus(
        step=report.step,
        todo=report.todo,
        command=report.command,
        clear=report.clear,
        ready_claims=report.ready,
        components=tuple(
            ComponentState(
                component=component.part,
                node=component.node,
                feature=component.switch,
                now=component.now,
                refuses=component.refuses,
            )
            for component in report.components
        ),
        claims=tuple(
            StandingClaim(
                namespace=claim.namespace,
                name=claim.name,
                uid=claim.uid,
                state=claim.standing,
                reason=claim.reason,
                message=claim.message,
                command=claim.command,
                pods=claim.pods,
                unlisted=claim.unlisted,
            )
            for claim in report.claims
        ),
    )
