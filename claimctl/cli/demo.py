"""``claimctl demo``: the whole story on an embedded cluster, or the user's own manifests."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.errors import CommandFailed, ExitCode, one_line

if TYPE_CHECKING:
    from claimctl.demo.report import Report


class Dialects(StrEnum):
    NATIVE = "native"
    PODGROUP = "podgroup"
    HOLD = "hold"


class Versions(StrEnum):
    V1_34 = "1.34"
    V1_35 = "1.35"
    V1_36 = "1.36"
    V1_37 = "1.37"


DialectOption = Annotated[
    Dialects, typer.Option("--dialect", help="The reservation API that the cluster speaks.")
]
VersionOption = Annotated[
    Versions | None,
    typer.Option(
        "--kubernetes-version", help="The version to emulate; else every one that differs."
    ),
]
FilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filename", "-f", metavar="FILE", help="Play these manifests instead; - is stdin."
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one object with what was measured, nothing else.")
]


def command(
    dialect: DialectOption = Dialects.NATIVE,
    kubernetes_version: VersionOption = None,
    files: FilesOption = None,
    json: JsonOption = False,
) -> int:
    """Start an embedded cluster, run the controller against it, and show what it does.

    Exit code 3: the server's history shows something that must never be true.
    """
    import asyncio

    from claimctl.demo.stage import StoryFailed
    from claimctl.telemetry import logs

    logs.configure(level=logs.Level.ERROR)
    version = kubernetes_version.value if kubernetes_version else None
    try:
        if files:
            return asyncio.run(_manifests(files, dialect, version or Versions.V1_36.value, json))
        return asyncio.run(_story(dialect, version, json))
    except StoryFailed as failed:
        raise CommandFailed(str(failed)) from failed


async def _story(dialect: str, version: str | None, json: bool) -> int:
    from claimctl.cli.output import print_json
    from claimctl.demo.report import Printer, Quiet
    from claimctl.demo.show import Show, play

    report = await play(Show.of(dialect, version), Quiet() if json else Printer())
    if json:
        print_json(report.document())
    return exit_code(report)


def exit_code(report: Report) -> int:
    """Violations are findings; a step that did not come true is a failure."""
    if report.violations:
        return ExitCode.FINDINGS
    return ExitCode.OK if report.ok else ExitCode.FAILED


async def _manifests(files: list[str], dialect: str, version: str, json: bool) -> int:
    from claimctl.cli.output import print_json
    from claimctl.demo.applying import BadManifests
    from claimctl.demo.play import play_files
    from claimctl.demo.report import Printer, Quiet

    try:
        report = await play_files(files, dialect, version, Quiet() if json else Printer())
    except BadManifests as bad:
        for problem in bad.problems:
            typer.echo(f"error: {one_line(problem)}", err=True)
        return ExitCode.USAGE
    if json:
        print_json(report.document())
    return ExitCode.FINDINGS if report.violations else ExitCode.OK
