"""``claimctl upgrade prepare``: takes claims and PodGroups out of the way of an upgrade."""

from __future__ import annotations

import re
from contextlib import suppress

from claimctl.cli.access import Access
from claimctl.cli.errors import CommandFailed, ExitCode, UsageError
from claimctl.cli.formats import Output
from claimctl.cli.output import print_data, render
from claimctl.cli.printer import reader_may_leave, say
from claimctl.cli.session import Session, in_session
from claimctl.commands.downgrade.flags import PlanFlags
from claimctl.commands.downgrade.following import PlanResult, time_limit
from claimctl.commands.downgrade.prepare_work import write_plan
from claimctl.commands.downgrade.report import (
    EXPANDED,
    LEFT,
    DowngradeReport,
    document,
    prepared_code,
    table,
)
from claimctl.commands.downgrade.status import DowngradeStatus
from claimctl.commands.downgrade.status_work import observe, show_all
from claimctl.downgrade import plans
from claimctl.downgrade.crossing import OLD, TARGET, OldObjects, read_old_objects
from claimctl.downgrade.records import PlanPhase
from claimctl.text import listed
from claimctl.wire.reservations import DowngradePlan, DowngradePlanSpec
from claimctl.wire.resources import PODGROUPS

NOT_BEGUN = "NotBegun"
"""The step of an upgrade that nobody has begun."""
NAMED = 5
"""How many objects of others a line names."""


def prepare_upgrade(access: Access, to: str, flags: PlanFlags) -> int:
    """Carry the preparation out, or say what is in its way; the exit code."""
    spec = DowngradePlanSpec(upgrade_to=checked_target(to), parallelism=flags.parallelism)

    async def work(session: Session) -> DowngradeReport:
        async with time_limit(flags):
            return await _prepare(session, spec, dry_run=flags.dry_run)

    report = in_session(access, work)
    render(flags.output, table(report, "No claim lists a PodGroup."), report)
    for line in conclusion(report):
        say(line)
    code = prepared_code(report)
    blocks = report.foreign_objects or (report.old_pod_groups and not report.dry_run)
    return ExitCode.FINDINGS if code == ExitCode.OK and blocks else code


async def show_status(session: Session, output: Output, *, watch: bool) -> int:
    """Show the next step of the upgrade that is under way, also after each change if that is
    wanted; the exit code."""
    if await _plan(session) is None:
        with reader_may_leave():
            _show_none(output)
        return ExitCode.OK

    async def judging() -> DowngradeStatus | None:
        plan = await _plan(session)
        if plan is None:
            say("The upgrade is over: its plan is deleted.")
            return None
        if not plan.spec.upgrade_to:
            text = "a downgrade is under way, and no upgrade: claimctl downgrade status"
            raise CommandFailed(text)
        return await observe(session.client)

    return await show_all(session, judging, output, watch=watch)


async def _plan(session: Session) -> DowngradePlan | None:
    """The plan; None also where the cluster does not know DowngradePlans."""
    with suppress(plans.PlanRefused):
        return await plans.find(session.client)
    return None


def _show_none(output: Output) -> None:
    """Say that no upgrade is under way, in the same format as of one that is."""
    command = f"claimctl upgrade prepare --to {TARGET} --dry-run"
    todo = f"No upgrade is under way. To see what one needs: {command}"
    if output.for_people:
        say(todo)
    else:
        print_data(output, DowngradeStatus(NOT_BEGUN, todo, command, clear=True))


def checked_target(text: str) -> str:
    """The version that ``--to`` names; UsageError if it is none, or if the upgrade to it needs no
    preparation."""
    version = text.removeprefix("v")
    if not re.fullmatch(r"\d+\.\d+", version):
        raise UsageError(f"--to: {text!r} is not a Kubernetes version: {TARGET} is expected")
    if version != TARGET:
        raise UsageError(
            f"--to: an upgrade to {version} needs no preparation by this command; the one to "
            f"{TARGET} does"
        )
    return version


async def _prepare(session: Session, spec: DowngradePlanSpec, *, dry_run: bool) -> DowngradeReport:
    """Say first what cannot cross; write only if everything can."""
    client = session.client
    if client.served(PODGROUPS).version != OLD:
        raise UsageError(
            f"--to: this cluster does not serve scheduling.k8s.io/{OLD}: it has no PodGroups, or "
            f"it is at {TARGET} already. There is nothing to prepare"
        )
    preview, old = await plans.preview(client, spec), await read_old_objects(client)
    if dry_run or old.foreign or preview.phase != PlanPhase.PREPARED:
        return _document(PlanResult(preview), old)
    result = await write_plan(session, spec)
    return _document(result, await read_old_objects(client))


def _document(result: PlanResult, old: OldObjects) -> DowngradeReport:
    return document(result, old_pod_groups=len(old.own), foreign_objects=old.foreign)


def conclusion(report: DowngradeReport) -> list[str]:
    """What the result means, and what to do next."""
    total, lines = len(report.claims), []
    if stay := report.count(LEFT):
        lines.append(f"{stay} of {total} claims cannot cross: see REASON, then run again")
    if foreign := report.foreign_objects:
        some = listed([*foreign[:NAMED], *(["more"] if len(foreign) > NAMED else [])])
        lines.append(
            f"{len(foreign)} objects of scheduling.k8s.io/{OLD} are not claimctl's and have to "
            f"be gone before {TARGET}: {some}. Delete what they belong to, then run again"
        )
    if lines:
        return [*lines, "nothing was written"] if report.dry_run else lines
    if report.dry_run:
        return [f"{total} claims and {report.old_pod_groups} PodGroups would be prepared"]
    if report.old_pod_groups:
        return [f"{report.old_pod_groups} PodGroups of claimctl are left: run again"]
    return [
        f"{report.count(EXPANDED)} of {total} claims are listed pod by pod, and "
        f"no object of scheduling.k8s.io/{OLD} is left",
        f"next step: upgrade the cluster to {TARGET}, then run `claimctl upgrade restore`",
    ]
