"""``claimctl reschedule --why``: why a policy moves a pod or leaves it, in one screen."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.cli.errors import CommandFailed, ExitCode
from claimctl.cli.objects import POD, resource_name
from claimctl.cli.output import print_text
from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound
from claimctl.reschedule.command.document import document
from claimctl.reschedule.command.wanted import RescheduleOptions
from claimctl.reschedule.plan.plan import Plan
from claimctl.reschedule.plan.reasons import MEANINGS
from claimctl.reschedule.run.steps import RunReport, Step
from claimctl.wire.resources import PODS


async def explain(client: Client, plan: Plan, wanted: RescheduleOptions) -> int:
    """Print what the plan says about one pod.

    Raises:
        CommandFailed: the pod does not exist.
        KubeError: the pod cannot be read.
    """
    namespace, _, name = wanted.why.partition("/")
    try:
        await client.get(PODS, name, namespace)
    except NotFound:
        raise CommandFailed(f"--why: there is no pod {wanted.why}") from None
    only, named = _about(plan, wanted.why), (resource_name(POD, name),)
    print_text(wanted.output, _lines(only, wanted.why), document(only, wanted), named)
    return ExitCode.OK


def _about(plan: Plan, name: str) -> RunReport:
    from msgspec.structs import replace

    moves = tuple(move for move in plan.moves if str(move.pod) == name)
    skipped = tuple(skip for skip in plan.skipped if str(skip.pod) == name)
    units = {move.unit for move in moves if move.unit}
    taints = tuple(taint for taint in plan.taints if taint.unit in units)
    only = replace(plan, moves=moves, skipped=skipped, taints=taints)
    return RunReport(only, [Step(move) for move in moves])


def _lines(only: RunReport, name: str) -> Iterator[str]:
    yield f"Pod {name}"
    if not only.plan.moves and not only.plan.skipped:
        yield "  No strategy of the policy considers it: there is nothing to improve on its node"
        yield "  and among the pods of its owner, or the policy does not concern them."
    for move in only.plan.moves:
        target = f" to {move.destination}" if move.destination else ""
        yield f"  {move.strategy} moves it from {move.pod.node}{target}."
        if move.why:
            yield f"    {move.why}"
        if move.unit:
            yield f"    It moves together with its unit {move.unit}, or not at all."
    for taint in only.plan.taints:
        yield f"    Node {taint.node} is closed first: {taint.key}={taint.value}:{taint.effect}"
    for skip in only.plan.skipped:
        yield f"  {skip.strategy} leaves it on {skip.pod.node or 'no node'}: {skip.reason}"
        yield f"    {MEANINGS[skip.reason]}"
        if skip.detail:
            yield f"    {skip.detail}"
