"""``claimctl downgrade-prepare``: replaces workload references by pod references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting_patiently
from claimctl.cli.formats import Output, OutputOption
from claimctl.cli.objects import object_name
from claimctl.cli.options import (
    DryRunOption,
    SelectorOption,
    namespace_names,
)
from claimctl.commands.downgrade.downgrade_report import (
    ParallelismOption,
    Result,
    TimeoutOption,
    document,
    shown_progress,
    table,
    time_limit,
)

if TYPE_CHECKING:
    from claimctl.cli.session import Session
    from claimctl.downgrade.status import Report
    from claimctl.wire.reservations import ClaimName, DowngradePlanSpec, DowngradePlanStatus

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


EXAMPLES = (
    "claimctl downgrade-prepare --dry-run",
    "claimctl downgrade-prepare -n ml --skip ml/train-slice",
)


@connecting_patiently
def command(  # noqa: PLR0913 - one parameter per flag
    namespaces: NamespacesOption = None,
    selector: SelectorOption = "",
    skip: SkipOption = None,
    parallelism: ParallelismOption = None,
    timeout: TimeoutOption = None,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Replace workload references by pod references, before the feature is switched off.

    Exit code 3: some claims cannot list their pods and were left as they are.
    """
    from claimctl.cli.output import render
    from claimctl.cli.session import in_session
    from claimctl.wire.base import to_plain
    from claimctl.wire.reservations import DowngradePlanSpec

    spec = DowngradePlanSpec(
        namespaces=tuple(dict.fromkeys(namespaces or ())),
        claim_selector=checked_selector(selector),
        skip=tuple(dict.fromkeys(map(claim_name, skip or ()))),
        parallelism=parallelism,
    )

    async def work(session: Session) -> tuple[Result, Report | None]:
        result = await within(timeout, session, spec, dry_run=dry_run)
        return result, None if dry_run else await next_step(session)

    result, report = in_session(access, work)
    details = {
        "namespaces": list(spec.namespaces),
        "claimSelector": spec.claim_selector,
        "skip": [to_plain(each) for each in spec.skip],
        "nextStep": None if report is None else str(report.step),
    }
    claims = result.status.claims
    render(
        output, table(result, claims, "No claim is held by a workload."), document(result, details)
    )
    _conclude(result, report)
    return exit_code(result.status)


async def next_step(session: Session) -> Report | None:
    """What comes after this run; None if it cannot be read with these rights."""
    from claimctl.commands.downgrade.downgrade_status import observe
    from claimctl.kube.errors import KubeError

    try:
        return await observe(session.client)
    except KubeError:
        return None


def checked_selector(text: str) -> str:
    from claimctl.wire.label_selectors import parse

    try:
        parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--selector' / '-l'") from None
    return text.strip()


def claim_name(text: str) -> ClaimName:
    from claimctl.wire.reservations import ClaimName

    namespace, slash, name = text.partition("/")
    try:
        if not slash:
            raise typer.BadParameter(f"{text!r} has no namespace: NAMESPACE/CLAIM is expected")
        namespace_names([namespace])
        return ClaimName(namespace=namespace, name=object_name(name))
    except typer.BadParameter as error:
        error.param_hint = "'--skip'"
        raise


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
        async with time_limit(seconds, dry_run=dry_run):
            if dry_run:
                return Result(await plans.preview(session.client, spec))
            return await prepare(session, spec)
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
    with shown_progress() as show:
        if tended:
            return Result(await plans.follow(client, plan, show), "controller")
        return Result(await plans.carry_out(client, plan, clock, show), "command")


def exit_code(status: DowngradePlanStatus) -> int:
    from claimctl.cli.errors import ExitCode
    from claimctl.downgrade.records import Phase, State

    if status.phase == Phase.FAILED or any(one.state == State.FAILED for one in status.claims):
        return ExitCode.FAILED
    return ExitCode.OK if status.phase == Phase.PREPARED else ExitCode.FINDINGS


def _conclude(result: Result, report: Report | None) -> None:
    """Print the result on stderr, and what to do next."""
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
    if report is not None:
        typer.echo(f"next step ({report.step}): {report.todo}", err=True)
    elif result.by:
        typer.echo("`claimctl downgrade-status` says what to do next", err=True)
