"""``claimctl doctor``: checks the cluster and the installation, as far as the user may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.errors import ExitCode
from claimctl.cli.formats import FactsOption, Output
from claimctl.cli.options import (
    NamespaceOption,
)

if TYPE_CHECKING:
    from claimctl.cli.output import Table
    from claimctl.cli.session import Session
    from claimctl.commands.doctor.cluster_checks import Finding
    from claimctl.commands.doctor.examination import Examination


EXAMPLES = (
    "claimctl doctor",
    "claimctl doctor -n ml                   # with the rights of one namespace",
    "claimctl doctor -o json",
)


@connecting
def command(
    dialect: Annotated[
        str,
        typer.Option(
            "--dialect", help="Assume this dialect: native, podgroup or hold; auto finds it out."
        ),
    ] = "auto",
    namespace: NamespaceOption = None,
    output: FactsOption = Output.TABLE,
    access: Access = DEFAULT,
) -> int:
    """Check the cluster, the installation of claimctl and the claims; exit code 3 with problems.

    Every check has a line: ok, fact, problem, or unknown where you may not read what it needs.
    Without -n the checks concern all namespaces.
    """
    from claimctl.cli.errors import UsageError
    from claimctl.cli.session import in_session

    known = ("auto", "native", "podgroup", "hold")
    if dialect not in known:
        raise UsageError(f"--dialect: {dialect!r} is not one of {', '.join(known)}")

    async def work(session: Session) -> int:
        return await run(session, dialect, namespace or "", output)

    return in_session(access, work)


async def run(session: Session, override: str, namespace: str, output: Output) -> int:
    from claimctl.cli.output import render
    from claimctl.commands.doctor.cluster_checks import Verdict
    from claimctl.commands.doctor.diagnosis import diagnosis
    from claimctl.commands.doctor.examination import examine

    seen = await examine(session.client, session.clock, override, namespace)
    found = diagnosis(seen)
    render(output, table(found), document(seen, found))
    problems = sum(each.verdict is Verdict.PROBLEM for each in found)
    unknown = sum(each.verdict is Verdict.UNKNOWN for each in found)
    if output.for_people:
        typer.echo(_summary(problems, unknown), err=True)
    return ExitCode.FINDINGS if problems else ExitCode.OK


def _summary(problems: int, unknown: int) -> str:
    from claimctl.text import counted

    told = counted(problems, "problem") if problems else "no problems"
    if unknown:
        told += f"; {counted(unknown, 'check')} not possible with your rights"
    return told


_STYLES = {"ok": "green", "problem": "bold red", "unknown": "yellow", "fact": "dim"}
_SIGNS = {"ok": "✔", "problem": "✗", "unknown": "?", "fact": "·"}


def table(found: tuple[Finding, ...]) -> Table:
    from claimctl.cli.output import Column, Table, columns, printable

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


def document(seen: Examination, found: tuple[Finding, ...]) -> dict[str, object]:
    from dataclasses import asdict

    from claimctl.commands.doctor.cluster_checks import Verdict

    lines = [{**asdict(each), "verdict": str(each.verdict)} for each in found]
    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "Diagnosis",
        "dialect": seen.observed.dialect or None,
        "reasons": list(seen.detection.reasons if seen.detection else (seen.dialect_unknown,)),
        "kubernetesVersion": ".".join(map(str, seen.version)),
        "servedVersions": {
            "resource.k8s.io": list(seen.served.claims),
            "podgroups.scheduling.k8s.io": list(seen.served.groups),
        },
        "controller": {"state": str(seen.election.state), "message": seen.election.message},
        "checks": lines,
        "findings": [one for one in lines if one["verdict"] == Verdict.PROBLEM],
    }
