"""What ``claimctl reschedule`` prints: moves, why other pods stay, and ``--why`` for one pod."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from claimctl.cli.errors import CommandFailed, ExitCode
from claimctl.cli.formats import Output
from claimctl.cli.objects import POD, resource_name
from claimctl.cli.output import Table, columns, print_data, print_table, print_text
from claimctl.cli.printer import print_lines, say
from claimctl.kube.client import Client
from claimctl.text import counted
from claimctl.wire.resources import PODS
from claimctl_reschedule.command.document import counted_reasons, document
from claimctl_reschedule.command.wanted import RescheduleOptions
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.reasons import MEANINGS
from claimctl_reschedule.run.steps import MoveStep, Result, RunReport


def show(report: RunReport, wanted: RescheduleOptions) -> None:
    """Print the result on stdout."""
    if not wanted.output.for_people:
        print_data(wanted.output, document(report, wanted), moves(report).names)
        return
    wide = wanted.output == Output.WIDE
    print_table(moves(report), wide=wide)
    if report.helps:
        print_lines("")
        print_table(helps(report), wide=wide)
    if report.plan.skipped and wanted.plan is None:
        print_lines("")
        print_table(stayed(report) if wide else reasons(report), wide=wide)


def moves(report: RunReport) -> Table:
    return Table(
        columns=columns(
            *("NAMESPACE", "POD", "STRATEGY", "FROM", "TO", "RESULT", "WHY"),
            *("OUTCOME", "OWNER", "UNIT", "UID"),
            text=("WHY",),
            drop=("WHY", "STRATEGY"),
            wide=("OUTCOME", "OWNER", "UNIT", "UID"),
        ),
        rows=tuple(map(_row, report.steps)),
        names=tuple(resource_name(POD, step.move.pod.name) for step in report.steps),
        empty="No pod is to be moved.",
    )


def _row(step: MoveStep) -> tuple[str, ...]:
    move = step.move
    owner = f"{move.owner.kind}/{move.owner.name}" if move.owner is not None else ""
    return (
        move.pod.namespace,
        move.pod.name,
        move.strategy,
        move.pod.node,
        step.landed or move.destination,
        str(step.reason or step.result),
        step.detail or move.why,
        str(step.outcome or ""),
        owner,
        move.unit,
        move.pod.uid,
    )


def helps(report: RunReport) -> Table:
    rows = (
        (help_.pod.namespace, help_.pod.name, help_.strategy, str(help_.result), help_.detail)
        for help_ in report.helps
    )
    names = ("NAMESPACE", "POD THAT NEEDS ROOM", "STRATEGY", "RESULT", "DETAIL")
    return Table(columns=columns(*names), rows=tuple(rows))


def reasons(report: RunReport) -> Table:
    rows = ((str(part.pods), part.strategy, part.reason) for part in counted_reasons(report))
    return Table(columns=columns("PODS THAT STAY", "STRATEGY", "REASON"), rows=tuple(rows))


def stayed(report: RunReport) -> Table:
    rows = (
        (skip.pod.namespace, skip.pod.name, skip.pod.node, skip.strategy, skip.reason, skip.detail)
        for skip in report.plan.skipped
    )
    names = ("NAMESPACE", "POD THAT STAYS", "NODE", "STRATEGY", "REASON", "DETAIL")
    return Table(columns=columns(*names), rows=tuple(rows))


def conclude(report: RunReport, wanted: RescheduleOptions) -> None:
    """Print on stderr what a reader should know beside the table, and the result in one line."""
    for note in report.plan.notes:
        say(f"{note.strategy}: {note.text}" if note.strategy else note.text)
    for line in report.notes:
        say(line)
    if report.failure:
        say(f"error: {report.failure}")
    say(_summary(report, wanted))


def _summary(report: RunReport, wanted: RescheduleOptions) -> str:
    planned = f"{len(report.steps)} evictions planned"
    if wanted.dry_run is not None:
        refused = len(report.blocked)
        would = f", {refused} would be refused now" if refused else ""
        return f"{planned}{would}; nothing was evicted"
    changed = sum(step.result is Result.LEFT for step in report.steps) - len(report.blocked)
    parts = [planned, f"{report.evicted} pods evicted"]
    if changed:
        stale = "; make a new plan" if report.is_stale else ""
        parts.append(f"{changed} left alone, since they changed{stale}")
    if report.blocked:
        parts.append(f"{len(report.blocked)} refused")
    if report.helps:
        helped = len(report.helps) - len(report.unhelped)
        parts.append(f"{helped} of {counted(len(report.helps), 'pod')} that needed room helped")
    if report.interrupted:
        parts.append("interrupted")
    return ", ".join(parts)


async def explain(client: Client, plan: Plan, wanted: RescheduleOptions) -> int:
    """Print what the plan says about one pod; raises CommandFailed if the pod does not exist."""
    namespace, _, name = wanted.why.partition("/")
    if await client.find(PODS, name, namespace) is None:
        raise CommandFailed(f"--why: there is no pod {wanted.why}")
    chosen = tuple(move for move in plan.moves if str(move.pod) == wanted.why)
    skipped = tuple(skip for skip in plan.skipped if str(skip.pod) == wanted.why)
    units = {move.unit for move in chosen if move.unit}
    taints = tuple(taint for taint in plan.taints if taint.unit in units)
    about = replace(plan, moves=chosen, skipped=skipped, taints=taints)
    only = RunReport(about, [MoveStep(move) for move in chosen])
    named = (resource_name(POD, name),)
    print_text(wanted.output, _lines(only, wanted.why), document(only, wanted), named)
    return ExitCode.OK


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
