"""``claimctl downgrade-prepare``: replaces workload references by pod references."""

from __future__ import annotations

import asyncio
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
    SelectorOption,
    Structured,
    StructuredOption,
    namespace_names,
    object_name,
)

if TYPE_CHECKING:
    from claimctl.cli.output import Table
    from claimctl.cli.session import Session
    from claimctl.downgrade.ledger import Progress
    from claimctl.wire.reservations import (
        ClaimName,
        DowngradedClaim,
        DowngradePlanSpec,
        DowngradePlanStatus,
    )

NamespacesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="A namespace whose claims are expanded; may be repeated. [default: all namespaces]",
        callback=namespace_names,
    ),
]
SkipOption = Annotated[
    list[str] | None,
    typer.Option(
        "--skip",
        metavar="NAMESPACE/CLAIM",
        help="A claim that stays as it is; may be repeated. Its pods may fail once the feature is "
        "off. [default: none]",
    ),
]
ParallelismOption = Annotated[
    int | None,
    typer.Option(
        "--parallelism",
        metavar="N",
        min=1,
        max=64,
        help="Claims that are written at a time. [default: 8]",
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=1,
        help="Seconds after which the command ends with exit code 1. The plan stays, a controller "
        "continues it, and so does the next run. [default: no limit]",
    ),
]


@dataclass(frozen=True, slots=True)
class Result:
    """``by``: who carried the plan out, "controller" or "command"; empty for a dry run."""

    status: DowngradePlanStatus
    by: str = ""


def command(  # noqa: PLR0913 - one parameter per flag
    namespaces: NamespacesOption = None,
    selector: SelectorOption = "",
    skip: SkipOption = None,
    parallelism: ParallelismOption = None,
    timeout: TimeoutOption = None,
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
    from claimctl.wire.reservations import DowngradePlanSpec

    spec = DowngradePlanSpec(
        namespaces=tuple(dict.fromkeys(namespaces or ())),
        claim_selector=checked_selector(selector),
        skip=tuple(dict.fromkeys(map(claim_name, skip or ()))),
        parallelism=parallelism,
    )

    async def work(session: Session) -> Result:
        return await within(timeout, session, spec, dry_run=dry_run)

    result = in_session(Access(kubeconfig, context, as_user), work)
    render(output, table(result), document(result, spec))
    _conclude(result)
    return exit_code(result.status)


def checked_selector(text: str) -> str:
    from claimctl.downgrade.label_selectors import parse

    try:
        parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--selector' / '-l'") from None
    return text.strip()


def claim_name(text: str) -> ClaimName:
    from claimctl.wire.reservations import ClaimName

    namespace, slash, name = text.partition("/")
    if not slash:
        raise typer.BadParameter(
            f"{text!r} has no namespace: NAMESPACE/CLAIM is expected", param_hint="'--skip'"
        )
    namespace_names([namespace])
    return ClaimName(namespace=namespace, name=object_name(name))


async def within(
    seconds: float | None, session: Session, spec: DowngradePlanSpec, *, dry_run: bool
) -> Result:
    """The result, if it is there in time.

    Raises:
        CommandFailed: the time is over, there is another plan, or the controller does not carry
            this one out.
        UsageError: a namespace does not exist.
    """
    from claimctl.cli.errors import CommandFailed, UsageError
    from claimctl.downgrade import plans

    try:
        async with asyncio.timeout(seconds):
            if dry_run:
                return Result(await plans.preview(session.client, spec))
            return await prepare(session, spec)
    except TimeoutError:
        stays = "" if dry_run else "; the plan stays, and another run continues it"
        raise CommandFailed(f"--timeout: not finished after {seconds:g} s{stays}") from None
    except plans.PlanRefused as refused:
        raise CommandFailed(str(refused)) from None
    except plans.NoSuchNamespace as missing:
        raise UsageError(f"--namespace: the cluster has no namespace {missing}") from None


async def prepare(session: Session, spec: DowngradePlanSpec) -> Result:
    """Write the plan. The controller carries it out, or this process if no controller runs."""
    from claimctl.downgrade import plans

    client, clock = session.client, session.clock
    tended = await plans.controller_runs(client, clock)
    plan = await plans.begin(client, spec)
    with progress() as show:
        if tended:
            return Result(await plans.follow(client, plan, show), "controller")
        return Result(await plans.carry_out(client, plan, clock, show), "command")


@contextmanager
def progress() -> Iterator[Progress]:
    """A progress bar with the estimated rest on stderr, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda status: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("claims, for"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
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


def document(result: Result, spec: DowngradePlanSpec) -> dict[str, Any]:
    """The stable form for programs."""
    from claimctl.wire.base import to_plain

    status = result.status
    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "DowngradeReport",
        "dryRun": not result.by,
        "carriedOutBy": result.by or None,
        "namespaces": list(spec.namespaces),
        "claimSelector": spec.claim_selector,
        "skip": [to_plain(each) for each in spec.skip],
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
    if skipped := states.count(State.SKIPPED):
        line += f"; {skipped} skipped, as you asked"
    if left:
        line += f"; {left} left as they are: see REASON"
    typer.echo(line, err=True)
