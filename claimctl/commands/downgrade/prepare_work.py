"""``claimctl downgrade prepare``: replaces workload references by pod references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import typer

from claimctl.cli.access import Access
from claimctl.cli.objects import object_name
from claimctl.cli.options import namespace_names
from claimctl.cli.output import render
from claimctl.cli.printer import say
from claimctl.cli.session import Session, in_session
from claimctl.commands.downgrade.flags import PlanFlags
from claimctl.commands.downgrade.following import PlanResult, following, time_limit
from claimctl.commands.downgrade.report import (
    EXPANDED,
    LEFT,
    DowngradeReport,
    document,
    loss,
    prepared_code,
    table,
)
from claimctl.commands.downgrade.status import DowngradeStatus
from claimctl.commands.downgrade.status_work import observe
from claimctl.downgrade import plans
from claimctl.downgrade.records import RecordState
from claimctl.downgrade.under_way import RESTORE_COMMAND
from claimctl.kube.errors import KubeError
from claimctl.wire.reservations import (
    DOWNGRADE_PLAN_NAME,
    ClaimName,
    DowngradedClaim,
    DowngradePlanSpec,
)

NAMED = 20
"""The most claims that are named before the plan begins; a dry run names all."""


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

    async def work(session: Session) -> DowngradeReport:
        async with time_limit(flags):
            planned = _document(PlanResult(await plans.preview(session.client, spec)), spec, None)
            if flags.dry_run:
                return planned
            known = await plans.find(session.client)
            for line in losses(planned, () if known is None else known.status.claims):
                say(line)
            result = await write_plan(session, spec)
        with suppress(KubeError):  # these rights may not be enough
            return _document(result, spec, await observe(session.client))
        return _document(result, spec, None)

    report = in_session(access, work)
    render(flags.output, table(report, "No claim is held by a workload."), report)
    for line in conclusion(report):
        say(line)
    return prepared_code(report)


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
    """Write the plan, and wait until a controller has carried it out."""
    async with following(session) as follower:
        return await follower.follow(await plans.begin(session.client, spec))


def _document(
    result: PlanResult, spec: DowngradePlanSpec, seen: DowngradeStatus | None
) -> DowngradeReport:
    return document(
        result,
        namespaces=spec.namespaces,
        claim_selector=spec.claim_selector,
        skip=spec.skip,
        next_step=None if seen is None else seen.step,
        todo=None if seen is None else seen.todo,
    )


def losses(planned: DowngradeReport, known: Iterable[DowngradedClaim]) -> Iterator[str]:
    """What the plan is going to end: which claims will be lost with their last pod.

    Args:
        known: the records of earlier runs, which have said it.
    """
    before = {record.uid for record in known if record.state == RecordState.EXPANDED}
    due = (claim for claim in planned.claims if claim.uid not in before)
    alone = [claim for claim in due if claim.held_by_pods_alone]
    for claim in alone[:NAMED]:
        yield f"{claim.namespace}/{claim.name}: {loss(claim)}"
    if len(alone) > NAMED:
        yield f"and {len(alone) - NAMED} more: --dry-run lists all of them"


def conclusion(report: DowngradeReport) -> Iterator[str]:
    """The result in one line, and what to do next."""
    yield _prepared(report) if report.claims else _only_frozen(dry_run=report.dry_run)
    if report.next_step is not None:
        yield f"next step ({report.next_step}): {report.todo}"
    elif not report.dry_run:
        yield "`claimctl downgrade status` says what to do next"
    claims = {(claim.namespace, claim.name) for claim in report.claims}
    for name in report.skip:
        if (name.namespace, name.name) not in claims:
            text = "no claim of this name is held by a workload"
            yield f"--skip {name.namespace}/{name.name}: {text}"


def _prepared(report: DowngradeReport) -> str:
    done = "would be listed pod by pod" if report.dry_run else "are listed pod by pod"
    line = f"{report.count(EXPANDED)} of {len(report.claims)} claims {done}"
    if skipped := report.count({RecordState.SKIPPED}):
        line += f"; {skipped} skipped, as you asked"
    if left := report.count(LEFT):
        line += f"; {left} left as they are: see REASON"
    return line


def _only_frozen(*, dry_run: bool) -> str:
    """What a plan without claims is for: no workload gets into a list before the feature is off."""
    stays, keeps = ("would stay", "would keep") if dry_run else ("stays", "keeps")
    return (
        f"there is nothing to prepare; DowngradePlan {DOWNGRADE_PLAN_NAME} {stays}, and {keeps} "
        f"workloads out of the lists of its claims, also of new ones, until `{RESTORE_COMMAND}`"
    )
