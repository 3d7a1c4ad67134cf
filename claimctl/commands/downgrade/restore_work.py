"""``claimctl downgrade restore``: lets the replaced workload references return."""

from __future__ import annotations

from claimctl.cli.access import Access
from claimctl.cli.errors import ExitCode
from claimctl.cli.output import render
from claimctl.cli.printer import say
from claimctl.cli.session import Session, in_session
from claimctl.commands.downgrade.flags import PlanFlags
from claimctl.commands.downgrade.report import PlanResult, carried_out, document, table, time_limit
from claimctl.controller.dialect import DialectProbe
from claimctl.downgrade import plans
from claimctl.downgrade.records import PlanPhase, RecordState
from claimctl.installation import controller_runs
from claimctl.wire.reservations import DowngradedClaim, DowngradePlanStatus

UPGRADE_TRIES, UPGRADE_PAUSE_SECONDS = 6, 5.0


def restore(access: Access, flags: PlanFlags) -> int:
    """Let the references return, or say which would; the exit code."""

    async def work(session: Session) -> PlanResult | None:
        async with time_limit(flags):
            if flags.dry_run:
                return await preview(session)
            return await carry_out(session, flags.parallelism)

    result = in_session(access, work)
    if result is None:
        say("There is no DowngradePlan, so there is nothing to restore.")
        return 0
    claims = concerned(result.status)
    render(flags.output, table(result, claims, "No reference is on record."), document(result))
    _conclude(result, claims)
    return exit_code(result.status)


async def preview(session: Session) -> PlanResult | None:
    detection = await DialectProbe(session.client).detect()
    status = await plans.preview_restore(session.client, session.clock, detection.dialect)
    return None if status is None else PlanResult(status)


async def carry_out(session: Session, parallelism: int | None) -> PlanResult | None:
    """Let the references return; after an upgrade, the controller has to make PodGroups first."""
    result = await _carry_out(session, parallelism)
    for _ in range(UPGRADE_TRIES):
        plan = await plans.find(session.client) if result is not None else None
        if plan is None or not plan.spec.upgrade_to:
            break
        await session.clock.sleep(UPGRADE_PAUSE_SECONDS)
        result = await _carry_out(session, parallelism)
    return result


async def _carry_out(session: Session, parallelism: int | None) -> PlanResult | None:
    """Ask for the way back. The controller carries it out, or this process if none runs."""
    client = session.client
    tended = await controller_runs(client, session.clock)
    detection = None if tended else await DialectProbe(client).detect()
    plan = await plans.begin_restore(client, parallelism)
    if plan is None:
        return None
    result = await carried_out(session, plan, detection.dialect if detection else None)
    if result.status.phase == PlanPhase.RESTORED:
        await plans.end(client)
    return result


def concerned(status: DowngradePlanStatus) -> list[DowngradedClaim]:
    """The claims whose references had been replaced."""
    states = {RecordState.RESTORED, RecordState.NOT_RESTORED}
    return [claim for claim in status.claims if claim.state in states or claim.replaced_references]


def exit_code(status: DowngradePlanStatus) -> int:
    if any(claim.state == RecordState.FAILED for claim in concerned(status)):
        return ExitCode.FAILED
    return ExitCode.OK if status.phase == PlanPhase.RESTORED else ExitCode.FINDINGS


def _conclude(result: PlanResult, claims: list[DowngradedClaim]) -> None:
    """Print one line with the result on stderr."""
    done = sum(claim.state == RecordState.RESTORED for claim in claims)
    verb = "have" if result.by else "would have"
    line = f"{done} of {len(claims)} claims {verb} their workload references again"
    if left := len(claims) - done:
        line += (
            f"; {left} have not: see REASON. They stay on record until another run restores them "
            "or you delete the plan (kubectl delete downgradeplan claimctl)"
        )
    elif result.by:
        line += "; the DowngradePlan is deleted"
    say(line)
