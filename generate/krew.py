"""krew's manifest and the archive that it installs: ``python -m generate.krew --url URL``.

URL is where the archive will be, as for a release. Both files are written to ``dist``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from claimctl import __version__

ROOT = Path(__file__).parents[1]
ARCHIVE, MANIFEST = "kubectl-claim.tar.gz", "claim.yaml"
PROGRAM = "kubectl-claim"
SCRIPT = f"""\
#!/bin/sh
# kubectl claim: claimctl is a Python package, and this runs it.
if command -v claimctl >/dev/null 2>&1; then
    exec claimctl "$@"
fi
if command -v uvx >/dev/null 2>&1; then
    exec uvx --from claimctl=={__version__} {PROGRAM} "$@"
fi
if command -v pipx >/dev/null 2>&1; then
    exec pipx run --spec claimctl=={__version__} {PROGRAM} "$@"
fi
echo "error: kubectl claim needs uv or pipx, or claimctl itself: pip install claimctl" >&2
exit 1
"""
DESCRIPTION = """\
claimctl keeps a ResourceClaim (DRA) reserved for a Deployment, StatefulSet or Job, from its first
pod until it has ended. This plugin shows who holds a claim and why, why a pod waits, and who has
the devices; it releases claims, and checks the installation of the controller.
"""
CAVEATS = "The plugin needs uv, pipx or an installed claimctl: claimctl is a Python package.\n"


def archive() -> bytes:
    """The archive, the same bytes at any time and place."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as files,
    ):
        _add(files, PROGRAM, SCRIPT.encode(), 0o755)
        _add(files, "LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644)
    return packed.getvalue()


def _add(files: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    files.addfile(entry, io.BytesIO(data))


def manifest(url: str) -> str:
    """krew's manifest of an archive at ``url``."""
    systems = {"key": "os", "operator": "In", "values": ["darwin", "linux"]}
    return yaml.safe_dump(
        {
            "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
            "kind": "Plugin",
            "metadata": {"name": "claim"},
            "spec": {
                "version": f"v{__version__}",
                "shortDescription": "Show and release reservations of DRA claims",
                "description": DESCRIPTION,
                "caveats": CAVEATS,
                "platforms": [
                    {
                        "selector": {"matchExpressions": [systems]},
                        "uri": url,
                        "sha256": hashlib.sha256(archive()).hexdigest(),
                        "bin": PROGRAM,
                    }
                ],
            },
        },
        sort_keys=False,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m generate.krew", description=__doc__)
    parser.add_argument("--url", required=True, help="where the archive will be")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder to write to")
    options = parser.parse_args(arguments)
    options.dist.mkdir(parents=True, exist_ok=True)
    (options.dist / ARCHIVE).write_bytes(archive())
    (options.dist / MANIFEST).write_text(manifest(options.url), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
