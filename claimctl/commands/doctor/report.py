"""``claimctl report``: a bundle for a bug report, without secrets."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claimctl.cli.access import DEFAULT, Access, connecting
from claimctl.cli.options import AllNamespacesOption, NamespaceOption

if TYPE_CHECKING:
    from claimctl.cli.session import Session
    from claimctl.commands.doctor.bundle import Bundle

MOST_CLAIMS = 100
"""How many claims are explained."""
EXAMPLES = (
    "claimctl report -n ml",
    "claimctl report -A --file report.zip",
)


@connecting
def command(
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    file: Annotated[
        Path,
        typer.Option("--file", "-f", metavar="FILE", help="The bundle to write, a new file."),
    ] = Path("claimctl-report.zip"),
    access: Access = DEFAULT,
) -> int:
    """Write a bundle for a bug report: objects, explanations, checks, versions, and logs.

    It has no Secrets and no ConfigMaps, and of pods no commands, arguments, environment variables
    and volumes. The parameters of drivers are hidden. Look through it before you send it.
    """
    from claimctl.cli.errors import UsageError
    from claimctl.cli.session import in_session

    if namespace and all_namespaces:
        raise UsageError("--all-namespaces (-A) and --namespace (-n) exclude each other")
    if file.exists():
        raise UsageError(f"--file: {file} exists; name another one")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"--file: there is no directory {file.absolute().parent}")

    async def work(session: Session) -> int:
        place = "" if all_namespaces else namespace or session.namespace
        bundle = await gathered(session, place)
        write(file, bundle)
        typer.echo(f"{file}: {len(bundle.files)} files; look through it before you send it")
        return 0

    return in_session(access, work)


async def gathered(session: Session, namespace: str) -> Bundle:
    """Read everything; stderr and the bundle name each request that fails."""
    from claimctl.cli.progress import progress
    from claimctl.commands.doctor.bundle import Bundle, read

    bundle = Bundle()
    with progress("reading the cluster") as line:
        async for step in _steps(session, namespace, bundle):
            line.say(f"reads {step} ...")
        async for step in read(session.client, namespace, bundle):
            line.say(f"reads {step} ...")
    for problem in bundle.problems:
        typer.echo(f"warning: {problem}", err=True)
    bundle.files["problems.txt"] = "\n".join(bundle.problems) + "\n"
    return bundle


async def _steps(session: Session, namespace: str, bundle: Bundle) -> AsyncIterator[str]:
    from claimctl.kube.errors import KubeError

    for name, part in (("versions", _versions), ("checks", _checks), ("claims", _claims)):
        yield name
        try:
            await part(session, namespace, bundle)
        except KubeError as error:
            bundle.problems.append(f"{name}: {error}")


async def _versions(session: Session, namespace: str, bundle: Bundle) -> None:
    from claimctl.commands.doctor.version import lines
    from claimctl.commands.doctor.versions import versions

    found = await versions(session.client, session.clock)
    bundle.files["version.txt"] = "\n".join(lines(found)) + "\n"


async def _checks(session: Session, namespace: str, bundle: Bundle) -> None:
    from claimctl.cli.output import print_table
    from claimctl.commands.doctor.diagnosis import diagnosis
    from claimctl.commands.doctor.doctor import document, table
    from claimctl.commands.doctor.examination import examine

    seen = await examine(session.client, session.clock, namespace=namespace)
    found, text = diagnosis(seen), io.StringIO()
    print_table(table(found), out=text)
    bundle.files["doctor.txt"] = text.getvalue()
    bundle.files["doctor.json"] = _json(document(seen, found))


async def _claims(session: Session, namespace: str, bundle: Bundle) -> None:
    from claimctl.cli.output import print_table
    from claimctl.commands.claims.claim_text import lines
    from claimctl.commands.claims.explanation import explain
    from claimctl.commands.claims.get import Wanted, gather, table
    from claimctl.kube.errors import KubeError

    now = session.clock.now()
    wanted, text = Wanted(namespace), io.StringIO()
    shown = await gather(session.client, wanted)
    print_table(table(shown, now, wanted), wide=True, out=text)
    bundle.files["claims.txt"] = text.getvalue()
    for view in shown[:MOST_CLAIMS]:
        try:
            told = await explain(session.client, view.namespace, view.name, now)
        except KubeError as error:
            bundle.problems.append(f"claim {view.namespace}/{view.name}: {error}")
            continue
        path = f"explain/{view.namespace}/{view.name}.txt"
        bundle.files[path] = "\n".join(lines(told)) + "\n"
    if len(shown) > MOST_CLAIMS:
        bundle.problems.append(f"{len(shown) - MOST_CLAIMS} claims are not explained")


def _json(document: dict[str, object]) -> str:
    import json

    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write(path: Path, bundle: Bundle) -> None:
    """Write the bundle as a zip file that only its owner may read.

    Raises:
        CommandFailed: the file cannot be written.
    """
    from claimctl.cli.errors import CommandFailed

    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with (
            os.fdopen(descriptor, "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for name, text in sorted(bundle.files.items()):
                archive.writestr(f"{path.stem}/{name}", text)
    except OSError as error:
        raise CommandFailed(f"cannot write {path}: {error.strerror}") from error
