"""``claimctl doctor``: checks the cluster and the installation, as far as the user may."""

from __future__ import annotations

import typer

from claimctl.cli.access import Access
from claimctl.cli.errors import ExitCode
from claimctl.cli.formats import Output
from claimctl.cli.output import Column, Table, columns, printable, render
from claimctl.cli.session import Session, in_session
from claimctl.commands.doctor.cluster_checks import Finding, Verdict
from claimctl.commands.doctor.diagnosis import diagnosis
from claimctl.commands.doctor.documents import diagnosis_of
from claimctl.commands.doctor.examination import examine
from claimctl.text import counted


def check(access: Access, dialect: str, namespace: str, output: Output) -> int:
    """Examine the cluster and print the findings; the exit code."""

    async def work(session: Session) -> int:
        return await run(session, dialect, namespace, output)

    return in_session(access, work)


async def run(session: Session, override: str, namespace: str, output: Output) -> int:

    seen = await examine(session.client, session.clock, override, namespace)
    found = diagnosis(seen)
    render(output, table(found), diagnosis_of(seen, found))
    problems = sum(each.verdict is Verdict.PROBLEM for each in found)
    unknown = sum(each.verdict is Verdict.UNKNOWN for each in found)
    if output.for_people:
        typer.echo(_summary(problems, unknown), err=True)
    return ExitCode.FINDINGS if problems else ExitCode.OK


def _summary(problems: int, unknown: int) -> str:

    told = counted(problems, "problem") if problems else "no problems"
    if unknown:
        told += f"; {counted(unknown, 'check')} not possible with your rights"
    return told


_STYLES = {"ok": "green", "problem": "bold red", "unknown": "yellow", "fact": "dim"}
_SIGNS = {"ok": "✔", "problem": "✗", "unknown": "?", "fact": "·"}


def table(found: tuple[Finding, ...]) -> Table:

    return Table(
        columns=(
            Column("RESULT", styles=_STYLES),
            *columns("CHECK", "OBJECT", "WHAT", text=("WHAT",)),
        ),
        rows=tuple(
            (
                f"{printable(_SIGNS[each.verdict])} {each.verdict}".strip(),
                each.check,
                _where(each) or "-",
                each.message,
            )
            for each in found
        ),
    )


def _where(finding: Finding) -> str:
    return "/".join(filter(None, (finding.namespace, finding.object)))
