"""``claimctl downgrade prepare``: replaces workload references by pod references."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import typer

from claimctl.cli.access import Access
from claimctl.cli.errors import ExitCode
from claimctl.cli.objects import object_name
from claimctl.cli.options import namespace_names
from claimctl.cli.output import render
from claimctl.cli.printer import say
from claimctl.cli.session import Session, in_session
from claimctl.commands.downgrade.flags import PlanFlags
from claimctl.commands.downgrade.report import PlanResult, carried_out, document, table, time_limit
from claimctl.commands.downgrade.status_work import observe
from claimctl.downgrade import plans
from claimctl.downgrade.records import PlanPhase, RecordState
from claimctl.downgrade.status import Report
from claimctl.installation import controller_runs
from claimctl.kube.errors import KubeError
from claimctl.wire.reservations import ClaimName, DowngradePlanSpec, DowngradePlanStatus


def prepare(
    access: Access, namespaces: Sequence[str], selector: str, skip: Sequence[str], flags: PlanFlags
) -> int:
    """Carry the plan out, or say what it would do; the exit code. BadParameter: a name is wrong."""
    spec = DowngradePlanSpec(
        namespaces=tuple(dict.fromkeys(namespaces)),
        claim_selector=selector,
        skip=tuple(dict.fromkeys(map(claim_name, skip))),
        parallelism=flags.parallelism,
    )

    async def work(session: Session) -> tuple[PlanResult, Report | None]:
        async with time_limit(flags):
            if flags.dry_run:
                return PlanResult(await plans.preview(session.client, spec)), None
            result = await write_plan(session, spec)
        with suppress(KubeError):  # these rights may not be enough
            return result, await observe(session.client)
        return result, None

    result, report = in_session(access, work)
    shown = document(
        result,
        namespaces=spec.namespaces,
        claim_selector=spec.claim_selector,
        skip=spec.skip,
        next_step=None if report is None else str(report.step),
    )
    render(
        flags.output, table(result, result.status.claims, "No claim is held by a workload."), shown
    )
    _conclude(result, report)
    claims = {(claim.namespace, claim.name) for claim in result.status.claims}
    for name in spec.skip:
        if (name.namespace, name.name) not in claims:
            text = "no claim of this name is held by a workload"
            say(f"--skip {name.namespace}/{name.name}: {text}")
    return exit_code(result.status)


def claim_name(text: str) -> ClaimName:
    namespace, slash, name = text.partition("/")
    try:
        if not slash:
            raise typer.BadParameter(f"{text!r} has no namespace: NAMESPACE/CLAIM is expected")
        namespace_names([namespace])
        return ClaimName(namespace=namespace, name=object_name(name))
    except typer.BadParameter as error:
        error.param_hint = "'--skip'"
        raise


async def write_plan(session: Session, spec: DowngradePlanSpec) -> PlanResult:
    """Write the plan. The controller carries it out, or this process if no controller runs."""
    tended = await controller_runs(session.client, session.clock)
    plan = await plans.begin(session.client, spec)
    return await carried_out(session, plan, None if tended else "")


def exit_code(status: DowngradePlanStatus) -> int:
    if status.phase == PlanPhase.FAILED or any(
        claim.state == RecordState.FAILED for claim in status.claims
    ):
        return ExitCode.FAILED
    return ExitCode.OK if status.phase == PlanPhase.PREPARED else ExitCode.FINDINGS


def _conclude(result: PlanResult, report: Report | None) -> None:
    """Print the result on stderr, and what to do next."""
    states = [claim.state for claim in result.status.claims]
    left = states.count(RecordState.REFUSED) + states.count(RecordState.FAILED)
    done = "would be listed pod by pod" if not result.by else "are listed pod by pod"
    line = f"{states.count(RecordState.EXPANDED)} of {len(states)} claims {done}"
    if skipped := states.count(RecordState.SKIPPED):
        line += f"; {skipped} skipped, as you asked"
    if left:
        line += f"; {left} left as they are: see REASON"
    say(line)
    if report is not None:
        say(f"next step ({report.step}): {report.todo}")
    elif result.by:
        say("`claimctl downgrade status` says what to do next")
