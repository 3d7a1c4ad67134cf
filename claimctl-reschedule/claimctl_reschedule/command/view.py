"""``claimctl reschedule`` prints its document: moves, why pods stay, and ``--why`` for one pod."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from claimctl.cli.errors import CommandFailed, ExitCode
from claimctl.cli.formats import Output
from claimctl.cli.objects import POD, resource_name
from claimctl.cli.output import Table, columns, print_data, print_table, print_text
from claimctl.cli.printer import print_lines, reader_may_leave, say
from claimctl.kube.client import Client
from claimctl.text import counted
from claimctl.wire.resources import PODS
from claimctl_reschedule.command.document import PlannedMove, RescheduleRun, document
from claimctl_reschedule.command.wanted import RescheduleOptions
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.reasons import MEANINGS, Ground
from claimctl_reschedule.run.steps import MoveStep, Result, RunReport


def show(report: RunReport, wanted: RescheduleOptions) -> None:
    """Print the result on stdout."""
    with reader_may_leave():
        _print(document(report, wanted), wanted)


def _print(run: RescheduleRun, wanted: RescheduleOptions) -> None:
    if not wanted.output.for_people:
        print_data(wanted.output, run, moves(run).names)
        return
    wide = wanted.output == Output.WIDE
    print_table(moves(run), wide=wide)
    if run.helped:
        print_lines("")
        print_table(helped(run), wide=wide)
    if run.stayed and wanted.plan is None:
        print_lines("")
        print_table(stayed(run) if wide else reasons(run), wide=wide)


def moves(run: RescheduleRun) -> Table:
    return Table(
        columns=columns(
            *("NAMESPACE", "POD", "STRATEGY", "FROM", "TO", "RESULT", "WHY"),
            *("OUTCOME", "OWNER", "UNIT", "UID"),
            text=("WHY",),
            drop=("WHY", "STRATEGY"),
            wide=("OUTCOME", "OWNER", "UNIT", "UID"),
        ),
        rows=tuple(map(_row, run.moves)),
        names=tuple(resource_name(POD, move.pod.name) for move in run.moves),
        empty="No pod is to be moved.",
    )


def _row(move: PlannedMove) -> tuple[str, ...]:
    return (
        move.pod.namespace,
        move.pod.name,
        move.strategy,
        move.pod.node,
        move.landed or move.destination,
        move.reason or move.result,
        move.detail or move.why,
        move.outcome,
        f"{move.owner.kind}/{move.owner.name}" if move.owner is not None else "",
        move.unit,
        move.pod.uid,
    )


def helped(run: RescheduleRun) -> Table:
    rows = (
        (pod.pod.namespace, pod.pod.name, pod.strategy, pod.result, pod.detail)
        for pod in run.helped
    )
    names = ("NAMESPACE", "POD THAT NEEDS ROOM", "STRATEGY", "RESULT", "DETAIL")
    return Table(columns=columns(*names), rows=tuple(rows))


def reasons(run: RescheduleRun) -> Table:
    rows = ((str(part.pods), part.strategy, part.reason) for part in run.reasons)
    return Table(columns=columns("PODS THAT STAY", "STRATEGY", "REASON"), rows=tuple(rows))


def stayed(run: RescheduleRun) -> Table:
    rows = (
        (stay.pod.namespace, stay.pod.name, stay.pod.node, stay.strategy, stay.reason, stay.detail)
        for stay in run.stayed
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
    not_begun = sum(step.reason is Ground.INTERRUPTED for step in report.blocked)
    if refused := len(report.blocked) - not_begun:
        parts.append(f"{refused} refused")
    if report.helps:
        helped = len(report.helps) - len(report.unhelped)
        parts.append(f"{helped} of {counted(len(report.helps), 'pod')} that needed room helped")
    if report.interrupted:
        parts.append(f"interrupted before {not_begun} began" if not_begun else "interrupted")
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
    only = document(RunReport(about, [MoveStep(move) for move in chosen]), wanted)
    print_text(wanted.output, _lines(only, wanted.why), only, (resource_name(POD, name),))
    return ExitCode.OK


def _lines(only: RescheduleRun, name: str) -> Iterator[str]:
    yield f"Pod {name}"
    if not only.moves and not only.stayed:
        yield "  No strategy of the policy considers it: there is nothing to improve on its node"
        yield "  and among the pods of its owner, or the policy does not concern them."
    for move in only.moves:
        target = f" to {move.destination}" if move.destination else ""
        yield f"  {move.strategy} moves it from {move.pod.node}{target}."
        if move.why:
            yield f"    {move.why}"
        if move.unit:
            yield f"    It moves together with its unit {move.unit}, or not at all."
    for taint in only.taints:
        yield f"    Node {taint.node} is closed first: {taint.key}={taint.value}:{taint.effect}"
    for stay in only.stayed:
        yield f"  {stay.strategy} leaves it on {stay.pod.node or 'no node'}: {stay.reason}"
        yield f"    {MEANINGS[Ground(stay.reason)]}"
        if stay.detail:
            yield f"    {stay.detail}"
