"""``claimctl doctor report``: a bundle for a bug report, without secrets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.errors import UsageError
from claimctl.cli.options import AllNamespacesOption, NamespaceOption, named, place_of

EXAMPLES = (
    "claimctl doctor report -n ml",
    "claimctl doctor report -A --file report.zip",
)


@connecting
def command(
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    file: Annotated[
        Path | None,
        named("--file -f FILE", "The bundle to write, a new file.", "claimctl-report-TIME.zip"),
    ] = None,
    access: Access = DEFAULT,
) -> int:
    """Write a bundle for a bug report: objects, explanations, checks, versions, and logs.

    It has no Secrets and no ConfigMaps, and of pods no commands, arguments, environment variables
    and volumes. The parameters of drivers are hidden. Look through it before you send it.
    """
    place = place_of(namespace, all_namespaces=all_namespaces)
    file = file or Path(f"claimctl-report-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip")
    if file.exists():
        raise UsageError(f"--file: {file} exists; name another one")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"--file: there is no directory {file.absolute().parent}")

    from claimctl.cli.session import in_session
    from claimctl.commands.doctor.report_work import report

    return in_session(access, report, place, file)
