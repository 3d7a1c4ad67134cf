"""``claimctl doctor``: checks the cluster and the installation, as far as the user may."""

from __future__ import annotations

from contextlib import suppress

from claimctl.cli.errors import CommandFailed, ExitCode
from claimctl.cli.formats import Output
from claimctl.cli.output import Column, Table, printable, render
from claimctl.cli.printer import say
from claimctl.cli.session import Session
from claimctl.commands.doctor.diagnosis import diagnosis, diagnosis_of
from claimctl.commands.doctor.examination import examine
from claimctl.commands.doctor.model import CheckVerdict, Finding
from claimctl.kube.errors import Forbidden, KubeError
from claimctl.text import counted
from claimctl.wire.resources import NAMESPACES, RESOURCECLAIMS


async def place_of(session: Session, namespace: str | None) -> str:
    """Where to look: in the namespace ('' for all), else in all, else in that of the context.
    CommandFailed if there is no such namespace."""
    if namespace == "":
        return ""
    if namespace is not None:
        with suppress(Forbidden):  # who may not look gets the answers that the rights allow
            if await session.client.find(NAMESPACES, namespace) is None:
                raise CommandFailed(f"there is no namespace {namespace}")
        return namespace
    place = session.namespace
    try:
        await session.client.version_now(RESOURCECLAIMS)
    except Forbidden:
        text = f"you may not list claims in all namespaces: namespace {place} is checked"
        say(text)
        return place
    except KubeError:  # the examination says what is the matter
        pass
    return ""


async def run(session: Session, override: str, namespace: str | None, output: Output) -> int:
    """Examine the cluster and print the findings; the exit code."""
    place = await place_of(session, namespace)
    seen = await examine(session.client, session.clock, override, place)
    findings = diagnosis(seen)
    render(output, table(findings), diagnosis_of(seen, findings))
    problems = sum(finding.verdict is CheckVerdict.PROBLEM for finding in findings)
    unknown = sum(finding.verdict is CheckVerdict.UNKNOWN for finding in findings)
    waits = sum(finding.verdict is CheckVerdict.WAITS for finding in findings)
    if output.for_people:
        say(summarize(problems, unknown, waits))
    return ExitCode.FINDINGS if problems else ExitCode.OK


def summarize(problems: int, unknown: int, waits: int = 0) -> str:
    """The result in one line. Without all checks it does not say that there is no problem, and
    never that all is well while something waits."""
    result = "no problem in what could be checked" if unknown else "no problems"
    left_out = f"{counted(unknown, 'check')} not possible with your rights"
    later = counted(waits, "line says what waits", "lines say what waits")
    parts = [
        counted(problems, "problem") if problems else result,
        *([later] if waits else []),
        *([left_out] if unknown else []),
    ]
    return "; ".join(parts)


_STYLES = {
    "ok": "green",
    "problem": "bold red",
    "unknown": "yellow",
    "fact": "dim",
    "waits": "yellow",
}
_SIGNS = {"ok": "✔", "problem": "✗", "unknown": "?", "fact": "·", "waits": "…"}


def table(findings: tuple[Finding, ...]) -> Table:
    return Table(
        columns=(
            Column("RESULT", styles=_STYLES),
            Column("CHECK", drop=2),
            Column("OBJECT", drop=1, into="WHAT"),
            Column("WHAT", text=True),
        ),
        rows=tuple(
            (
                f"{printable(_SIGNS[finding.verdict], '')} {finding.verdict}".strip(),
                finding.check,
                "/".join(filter(None, (finding.namespace, finding.object))) or "-",
                finding.message,
            )
            for finding in findings
        ),
    )
