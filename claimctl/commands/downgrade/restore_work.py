"""``claimctl downgrade restore``: lets the replaced workload references return."""

from __future__ import annotations

from claimctl.cli.access import Access
from claimctl.cli.errors import ExitCode
from claimctl.cli.output import render
from claimctl.cli.printer import say
from claimctl.cli.session import Session, in_session
from claimctl.commands.downgrade.flags import PlanFlags
from claimctl.commands.downgrade.following import PlanResult, following, time_limit
from claimctl.commands.downgrade.report import (
    RESTORED,
    DowngradeReport,
    document,
    table,
)
from claimctl.controller.dialect import DialectProbe
from claimctl.downgrade import plans
from claimctl.downgrade.records import PlanPhase, RecordState
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
    report = document(result, concerned(result.status))
    render(flags.output, table(report, "No reference is on record."), report)
    say(conclusion(report))
    return restored_code(report)


async def preview(session: Session) -> PlanResult | None:
    detection = await DialectProbe(session.client).detect()
    status = await plans.preview_restore(session.client, session.clock, detection.dialect)
    return None if status is None else PlanResult(status)


async def carry_out(session: Session, parallelism: int | None) -> PlanResult | None:
    """Let the references return; after an upgrade, the controller has to make PodGroups first."""
    if await plans.find(session.client) is None:
        return None
    async with following(session) as follower:
        result = None
        for _ in range(1 + UPGRADE_TRIES):
            plan = await plans.begin_restore(session.client, parallelism)
            if plan is None:
                break
            result = await follower.follow(plan)
            if result.status.phase == PlanPhase.RESTORED:
                await plans.end(session.client)
                break
            if not plan.spec.upgrade_to or result.by == "command":
                break
            await session.clock.sleep(UPGRADE_PAUSE_SECONDS)
        return result


def concerned(status: DowngradePlanStatus) -> list[DowngradedClaim]:
    """The claims whose references had been replaced."""
    states = {RecordState.RESTORED, RecordState.NOT_RESTORED}
    return [claim for claim in status.claims if claim.state in states or claim.replaced_references]


def restored_code(report: DowngradeReport) -> int:
    if report.count({RecordState.FAILED}):
        return ExitCode.FAILED
    return ExitCode.OK if report.phase == PlanPhase.RESTORED else ExitCode.FINDINGS


def conclusion(report: DowngradeReport) -> str:
    """One line with the result."""
    done, total = report.count(RESTORED), len(report.claims)
    verb = "would have" if report.dry_run else "have"
    line = f"{done} of {total} claims {verb} their workload references again"
    if left := total - done:
        return (
            f"{line}; {left} have not: see REASON. They stay on record until another run restores "
            "them or you delete the plan (kubectl delete downgradeplan claimctl)"
        )
    return line if report.dry_run else f"{line}; the DowngradePlan is deleted"
