"""``claimctl doctor report``: a bundle for a bug report, without secrets."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

from claimctl.cli.documents import plain
from claimctl.cli.errors import CommandFailed
from claimctl.cli.output import as_json, print_table
from claimctl.cli.printer import as_lines, print_lines, say
from claimctl.cli.progress import progress
from claimctl.cli.session import Session
from claimctl.commands.claims import explain_text, get_work
from claimctl.commands.claims.explanation import explain
from claimctl.commands.doctor import doctor_work, version_work
from claimctl.commands.doctor.bundle import Bundle, read
from claimctl.commands.doctor.diagnosis import diagnosis
from claimctl.commands.doctor.documents import diagnosis_of
from claimctl.commands.doctor.examination import examine
from claimctl.commands.doctor.versions import versions
from claimctl.kube.errors import KubeError

MOST_CLAIMS = 100
"""How many claims are explained."""


async def report(session: Session, file: Path) -> int:
    """Write the bundle of the session's namespace; the exit code."""
    bundle = await gathered(session, session.namespace)
    write(file, bundle)
    print_lines(f"{file}: {len(bundle.files)} files; look through it before you send it")
    return 0


async def gathered(session: Session, namespace: str) -> Bundle:
    """Read everything; stderr and the bundle name each request that fails."""
    bundle = Bundle()
    with progress("reading the cluster") as line:
        async for step in _steps(session, namespace, bundle):
            line.say(f"reads {step} ...")
        async for step in read(session.client, namespace, bundle):
            line.say(f"reads {step} ...")
    say(*(f"warning: {problem}" for problem in bundle.problems))
    bundle.files["problems.txt"] = as_lines(bundle.problems)
    return bundle


async def _steps(session: Session, namespace: str, bundle: Bundle) -> AsyncIterator[str]:
    for name, part in (("versions", _versions), ("checks", _checks), ("claims", _claims)):
        yield name
        try:
            await part(session, namespace, bundle)
        except KubeError as error:
            bundle.problems.append(f"{name}: {error}")


async def _versions(session: Session, _: str, bundle: Bundle) -> None:
    known = await versions(session.client, session.clock)
    bundle.files["version.txt"] = as_lines(version_work.lines(known))


async def _checks(session: Session, namespace: str, bundle: Bundle) -> None:
    seen = await examine(session.client, session.clock, namespace=namespace)
    findings, text = diagnosis(seen), io.StringIO()
    print_table(doctor_work.table(findings), out=text)
    bundle.files["doctor.txt"] = text.getvalue()
    bundle.files["doctor.json"] = as_json(plain(diagnosis_of(seen, findings))) + "\n"


async def _claims(session: Session, namespace: str, bundle: Bundle) -> None:
    now = session.clock.now()
    wanted, text = get_work.ClaimsWanted(namespace), io.StringIO()
    shown = await get_work.gather(session.client, wanted)
    print_table(get_work.table(shown, now, wanted), wide=True, out=text)
    bundle.files["claims.txt"] = text.getvalue()
    for view in shown[:MOST_CLAIMS]:
        try:
            explanation = await explain(session.client, view.namespace, view.name, now)
        except KubeError as error:
            bundle.problems.append(f"claim {view.namespace}/{view.name}: {error}")
            continue
        path = f"explain/{view.namespace}/{view.name}.txt"
        bundle.files[path] = as_lines(explain_text.claim_lines(explanation))
    if len(shown) > MOST_CLAIMS:
        bundle.problems.append(f"{len(shown) - MOST_CLAIMS} claims are not explained")


def write(path: Path, bundle: Bundle) -> None:
    """Write the bundle as a zip file that only its owner may read, or raise CommandFailed."""
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
