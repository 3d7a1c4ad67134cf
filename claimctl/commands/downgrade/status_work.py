"""``claimctl downgrade status``: which step of a downgrade is next, and what is in its way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from claimctl.cli.errors import ExitCode, UsageError
from claimctl.cli.formats import Output
from claimctl.cli.objects import CLAIM, resource_name
from claimctl.cli.output import Table, columns, print_data, print_table
from claimctl.cli.printer import print_lines, reader_may_leave, say
from claimctl.cli.session import Session
from claimctl.commands.downgrade.look import look
from claimctl.commands.downgrade.status import ComponentName, DowngradeStatus, DowngradeStep, judge
from claimctl.controller.dialect import GROUPS_FORBIDDEN, DialectProbe, DialectUnknown
from claimctl.kube.client import Client
from claimctl.kube.errors import Unreachable

Judging = Callable[[], Awaitable[DowngradeStatus | None]]
"""Looks and judges; None where there is nothing to report, which ends the work."""
PAUSE_SECONDS = 5.0
PAUSE_FACTOR = 10.0
"""The pause of ``-w`` is at least this many times as long as the last look took."""


def parts(names: Sequence[str]) -> frozenset[ComponentName]:
    """The components of ``--switched-off``; UsageError if one is none."""
    known = [str(part) for part in ComponentName]
    for name in names:
        if name not in known:
            raise UsageError(f"--switched-off: {name!r} is not one of {', '.join(known)}")
    return frozenset(map(ComponentName, names))


async def run(
    session: Session, believed: frozenset[ComponentName], output: Output, *, watch: bool
) -> int:
    """Show how far the downgrade is, also after each change if that is wanted; the exit code."""

    async def judging() -> DowngradeStatus:
        return await observe(session.client, believed)

    return await show_all(session, judging, output, watch=watch)


async def show_all(session: Session, judging: Judging, output: Output, *, watch: bool) -> int:
    """Show what a look reports, and each change if that is wanted; the exit code."""
    report = await judging()
    if report is None:
        return ExitCode.OK
    if watch:
        show(report, output)
        report = await follow(session, judging, output, report)
    else:
        with reader_may_leave():
            show(report, output)
    return ExitCode.OK if report.clear else ExitCode.FINDINGS


async def follow(
    session: Session,
    judging: Judging,
    output: Output,
    report: DowngradeStatus,
) -> DowngradeStatus:
    """Look again and again, and print each change, until the last step is done. The API server
    restarts meanwhile: a look that fails is repeated."""
    took = 0.0
    while report.step != DowngradeStep.DONE:
        await session.clock.sleep(max(PAUSE_SECONDS, PAUSE_FACTOR * took))
        began, seen = session.clock.monotonic(), report
        try:
            if (again := await judging()) is None:
                break
            seen = again
        except Unreachable as error:
            say(f"looks again soon: {error}")
        took = session.clock.monotonic() - began
        if seen != report:
            report = seen
            show(report, output)
    return report


async def observe(
    client: Client, believed: frozenset[ComponentName] = frozenset()
) -> DowngradeStatus:
    """Look at the cluster and judge it."""
    served: bool | None
    try:
        detection = await DialectProbe(client).detect()
    except DialectUnknown as error:
        served, why = None, str(error)
    else:
        # the last reason is the server's version
        served, why = detection.dialect != "hold", detection.reasons[-2]
        if GROUPS_FORBIDDEN in detection.reasons:
            served = None
    return judge(await look(client, served, why, believed))


def show(status: DowngradeStatus, output: Output) -> None:
    """Print the document, or the same as text."""
    if output.for_people:
        titles = ("COMPONENT", "NODE", "FEATURE", "WHAT HAPPENS NOW")
        rows = tuple((part.part, part.node, part.switch, part.now) for part in status.components)
        print_table(Table(columns=columns(*titles, text=titles[-1:]), rows=rows))
        if status.claims:
            print_lines("")
            print_table(_claims(status))
    else:
        print_data(output, status, _claims(status).names)
    say(conclusion(status))


def conclusion(status: DowngradeStatus) -> str:
    """One line: how many claims are ready, and what to do next."""
    total = status.ready + len(status.claims)
    line = f"{status.ready} of {total} claims are ready"
    if status.blocked:
        line += f", {status.blocked} are blocked"
    return f"{line}; next step ({status.step}): {status.todo}"


def _claims(status: DowngradeStatus) -> Table:
    rows = tuple(
        (
            claim.namespace,
            claim.name,
            claim.standing,
            str(claim.pods),
            str(claim.unlisted),
            claim.reason,
            claim.message,
            claim.command,
        )
        for claim in status.claims
    )
    titles = ("NAMESPACE", "CLAIM", "STATE", "PODS", "UNLISTED", "REASON", "MESSAGE", "COMMAND")
    return Table(
        columns=columns(*titles, text=titles[-2:], drop=("PODS", "UNLISTED", "STATE")),
        rows=rows,
        names=tuple(resource_name(CLAIM, claim.name) for claim in status.claims),
    )
