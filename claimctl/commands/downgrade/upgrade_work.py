"""``claimctl upgrade prepare``: takes claims and PodGroups out of the way of an upgrade."""

from __future__ import annotations

import re

from claimctl.cli.access import Access
from claimctl.cli.errors import CommandFailed, ExitCode, UsageError
from claimctl.cli.formats import Output
from claimctl.cli.output import render
from claimctl.cli.printer import say
from claimctl.cli.session import Session, in_session
from claimctl.commands.downgrade.flags import PlanFlags
from claimctl.commands.downgrade.prepare_work import exit_code, write_plan
from claimctl.commands.downgrade.report import PlanResult, document, table, time_limit
from claimctl.commands.downgrade.status_work import run
from claimctl.downgrade import plans
from claimctl.downgrade.crossing import OLD, TARGET, OldObjects, read_old_objects
from claimctl.downgrade.records import PlanPhase, RecordState
from claimctl.text import listed
from claimctl.wire.reservations import DowngradePlanSpec
from claimctl.wire.resources import PODGROUPS

NAMED = 5
"""How many objects of others a line names."""


def prepare_upgrade(access: Access, to: str, flags: PlanFlags) -> int:
    """Carry the preparation out, or say what is in its way; the exit code."""
    spec = DowngradePlanSpec(upgrade_to=checked_target(to), parallelism=flags.parallelism)

    async def work(session: Session) -> tuple[PlanResult, OldObjects]:
        async with time_limit(flags):
            return await _prepare(session, spec, dry_run=flags.dry_run)

    result, old = in_session(access, work)
    claims = result.status.claims
    render(flags.output, table(result, claims, "No claim lists a PodGroup."), document(result))
    for line in conclusion(result, old):
        say(line)
    code, blocks = exit_code(result.status), old.foreign or (result.by and old.own)
    return ExitCode.FINDINGS if code == ExitCode.OK and blocks else code


async def show_status(session: Session, output: Output) -> int:
    """Show the next step of the upgrade that is under way; the exit code."""
    plan = await plans.find(session.client)
    if plan is None:
        command = f"claimctl upgrade prepare --to {TARGET} --dry-run"
        say(f"No upgrade is under way. To see what one needs: {command}")
        return ExitCode.OK
    if not plan.spec.upgrade_to:
        raise CommandFailed("a downgrade is under way, and no upgrade: claimctl downgrade status")
    return await run(session, frozenset(), output, watch=False)


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


async def _prepare(
    session: Session, spec: DowngradePlanSpec, *, dry_run: bool
) -> tuple[PlanResult, OldObjects]:
    """Say first what cannot cross; write only if everything can."""
    client = session.client
    if client.served(PODGROUPS).version != OLD:
        raise UsageError(
            f"--to: this cluster does not serve scheduling.k8s.io/{OLD}: it has no PodGroups, or "
            f"it is at {TARGET} already. There is nothing to prepare"
        )
    preview, old = await plans.preview(client, spec), await read_old_objects(client)
    if dry_run or old.foreign or preview.phase != PlanPhase.PREPARED:
        return PlanResult(preview), old
    result = await write_plan(session, spec)
    return result, await read_old_objects(client)


def conclusion(result: PlanResult, old: OldObjects) -> list[str]:
    """What the result means, and what to do next."""
    states = [claim.state for claim in result.status.claims]
    stay = states.count(RecordState.REFUSED) + states.count(RecordState.FAILED)
    lines = []
    if stay:
        lines.append(f"{stay} of {len(states)} claims cannot cross: see REASON, then run again")
    if old.foreign:
        some = listed([*old.foreign[:NAMED], *(["more"] if len(old.foreign) > NAMED else [])])
        lines.append(
            f"{len(old.foreign)} objects of scheduling.k8s.io/{OLD} are not claimctl's and have to "
            f"be gone before {TARGET}: {some}. Delete what they belong to, then run again"
        )
    if lines:
        return lines if result.by else [*lines, "nothing was written"]
    if not result.by:
        return [f"{len(states)} claims and {len(old.own)} PodGroups would be prepared"]
    if old.own:
        return [f"{len(old.own)} PodGroups of claimctl are left: run again"]
    return [
        f"{states.count(RecordState.EXPANDED)} of {len(states)} claims are listed pod by pod, and "
        f"no object of scheduling.k8s.io/{OLD} is left",
        f"next step: upgrade the cluster to {TARGET}, then run `claimctl upgrade restore`",
    ]
