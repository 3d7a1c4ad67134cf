"""``claimctl downgrade-prepare``: replaces workload references by pod references."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from claimctl.cli.options import (
    AsOption,
    ContextOption,
    DryRunOption,
    KubeconfigOption,
    Structured,
    StructuredOption,
)

if TYPE_CHECKING:
    from claimctl.cli.output import Table
    from claimctl.cli.session import Session
    from claimctl.downgrade.ledger import Progress
    from claimctl.wire.reservations import DowngradedClaim, DowngradePlanStatus

NamespacesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="A namespace whose claims are expanded; may be repeated. [default: all namespaces]",
    ),
]


@dataclass(frozen=True, slots=True)
class Result:
    """``by``: who carried the plan out, "controller" or "command"; empty for a dry run."""

    status: DowngradePlanStatus
    by: str = ""


def command(
    namespaces: NamespacesOption = None,
    dry_run: DryRunOption = False,
    output: StructuredOption = Structured.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    as_user: AsOption = None,
) -> int:
    """Replace workload references by pod references, before the feature is switched off.

    Exit code 3: some claims cannot list their pods and were left as they are.
    """
    from claimctl.cli.output import render
    from claimctl.cli.session import Access, in_session

    scope = tuple(dict.fromkeys(namespaces or ()))

    async def work(session: Session) -> Result:
        return await (preview if dry_run else prepare)(session, scope)

    result = in_session(Access(kubeconfig, context, as_user), work)
    render(output, table(result), document(result, scope))
    _conclude(result)
    return exit_code(result.status)


async def preview(session: Session, scope: tuple[str, ...]) -> Result:
    """The result that the command would have. Writes nothing."""
    from claimctl.downgrade import plans, prepare
    from claimctl.wire.reservations import (
        DowngradePlan,
        DowngradePlanSpec,
        DowngradePlanStatus,
    )

    try:
        known = await plans.find(session.client)
    except plans.PlanRefused:
        known = ()  # no CRDs: nothing is recorded yet, and a preview records nothing
    earlier = next((plan.status for plan in known), DowngradePlanStatus())
    plan = DowngradePlan(spec=DowngradePlanSpec(namespaces=scope), status=earlier)
    return Result(await prepare.preview(session.client, plan))


async def prepare(session: Session, scope: tuple[str, ...]) -> Result:
    """Write the plan. The controller carries it out, or this process if no controller runs.

    Raises:
        CommandFailed: there is another plan, or the controller does not carry this one out.
    """
    from claimctl.cli.errors import CommandFailed
    from claimctl.downgrade import plans

    client, clock = session.client, session.clock
    try:
        tended = await plans.controller_runs(client, clock)
        plan = await plans.begin(client, scope)
        with progress() as show:
            if tended:
                return Result(await plans.follow(client, plan, show), "controller")
            return Result(await plans.carry_out(client, plan, clock, show), "command")
    except plans.PlanRefused as refused:
        raise CommandFailed(str(refused)) from None


@contextmanager
def progress() -> Iterator[Progress]:
    """A progress bar on stderr, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda status: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("waiting for the freeze", total=None)

        def show(status: DowngradePlanStatus) -> None:
            bar.update(
                task,
                description=status.phase or "waiting for the freeze",
                total=status.total or None,
                completed=status.done,
            )

        yield show


def exit_code(status: DowngradePlanStatus) -> int:
    from claimctl.cli.errors import ExitCode
    from claimctl.downgrade.records import Phase, State

    if status.phase == Phase.FAILED or any(one.state == State.FAILED for one in status.claims):
        return ExitCode.FAILED
    return ExitCode.OK if status.phase == Phase.PREPARED else ExitCode.FINDINGS


def table(result: Result) -> Table:
    from claimctl.cli.output import Column, Table

    columns = ("NAMESPACE", "CLAIM", "WORKLOAD", "STATE", "PODS", "REASON", "MESSAGE")
    rows = tuple(
        (
            one.namespace,
            one.name,
            ",".join(_workloads(one)),
            _state(one, result),
            str(one.pods),
            one.reason,
            one.message,
        )
        for one in result.status.claims
    )
    return Table(
        columns=tuple(map(Column, columns)), rows=rows, empty="No claim is held by a workload."
    )


def _state(one: DowngradedClaim, result: Result) -> str:
    from claimctl.downgrade.records import State

    return "WouldExpand" if not result.by and one.state == State.EXPANDED else one.state


def _workloads(one: DowngradedClaim) -> list[str]:
    return [f"{each.resource}/{each.name}" for each in one.workload_references]


def document(result: Result, scope: tuple[str, ...]) -> dict[str, Any]:
    """The stable form for programs."""
    from claimctl.wire.base import to_plain

    status = result.status
    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "DowngradeReport",
        "dryRun": not result.by,
        "carriedOutBy": result.by or None,
        "namespaces": list(scope),
        "phase": status.phase,
        "total": status.total,
        "done": status.done,
        "claims": [
            {
                "namespace": one.namespace,
                "name": one.name,
                "uid": one.uid,
                "state": _state(one, result),
                "reason": one.reason,
                "message": one.message,
                "pods": one.pods,
                "workloadReferences": [to_plain(each) for each in one.workload_references],
                "replacedReferences": [to_plain(each) for each in one.replaced_references],
            }
            for one in status.claims
        ],
    }


def _conclude(result: Result) -> None:
    """Print one line with the result on stderr."""
    from claimctl.downgrade.records import State

    states = [one.state for one in result.status.claims]
    left = states.count(State.REFUSED) + states.count(State.FAILED)
    done = "would be listed pod by pod" if not result.by else "are listed pod by pod"
    line = f"{states.count(State.EXPANDED)} of {len(states)} claims {done}"
    if left:
        line += f"; {left} left as they are: see REASON"
    typer.echo(line, err=True)
