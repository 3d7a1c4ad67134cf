"""krew's manifest and the archive that it installs: ``python -m release.krew --url URL``.

URL is where the archive will be, as for a release. Both files are written to ``dist``.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from claimctl import __version__
from release.archives import EXECUTABLE, READABLE, pack
from release.wheels import build_release_wheel

ROOT = Path(__file__).parents[2]
ARCHIVE, MANIFEST = "kubectl-claim.tar.gz", "claim.yaml"
PROGRAM = "kubectl-claim"
# the wheel comes along: nobody owns the name claimctl on an index of packages
SCRIPT = """\
#!/bin/sh
# kubectl claim: claimctl is a Python package, and this runs it.
if command -v claimctl >/dev/null 2>&1; then
    exec claimctl "$@"
fi
# krew calls this by a symbolic link
program=$(readlink "$0" || echo "$0")
wheel=$(dirname "$program")/{wheel}
if command -v uvx >/dev/null 2>&1; then
    exec uvx --from "$wheel" kubectl-claim "$@"
fi
if command -v pipx >/dev/null 2>&1; then
    exec pipx run --spec "$wheel" kubectl-claim "$@"
fi
echo "error: kubectl claim needs uv or pipx, or claimctl itself: pip install $wheel" >&2
exit 1
"""
DESCRIPTION = """\
claimctl keeps a ResourceClaim (DRA) reserved for a Deployment, StatefulSet or Job, from its first
pod until it has ended. This plugin shows who holds a claim and why, why a pod waits, and who has
the devices; it releases claims, and checks the installation of the controller.
"""
CAVEATS = "The plugin needs uv, pipx or an installed claimctl: claimctl is a Python package.\n"


def pack_plugin(wheel: Path) -> bytes:
    """The archive: the script, and the wheel that it runs."""
    return pack(
        {
            PROGRAM: (SCRIPT.format(wheel=wheel.name).encode(), EXECUTABLE),
            wheel.name: (wheel.read_bytes(), READABLE),
            "LICENSE": ((ROOT / "LICENSE").read_bytes(), READABLE),
        }
    )


def render_manifest(archive: bytes, url: str) -> str:
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
                        "sha256": hashlib.sha256(archive).hexdigest(),
                        "bin": PROGRAM,
                    }
                ],
            },
        },
        sort_keys=False,
    )


def write(dist: Path, url: str) -> None:
    """Write the archive and, if there is a URL, the manifest."""
    with tempfile.TemporaryDirectory() as built:
        archive = pack_plugin(build_release_wheel(Path(built)))
    dist.mkdir(parents=True, exist_ok=True)
    (dist / ARCHIVE).write_bytes(archive)
    if url:
        (dist / MANIFEST).write_text(render_manifest(archive, url), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m release.krew", description=__doc__)
    parser.add_argument("--url", required=True, help="where the archive will be")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder to write to")
    options = parser.parse_args(arguments)
    write(options.dist, options.url)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
