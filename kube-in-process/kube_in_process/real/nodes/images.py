"""An image for pods of tests: one program that runs for some seconds, or for ever.

The image is written in the format of ``docker save``, and contains busybox and a script.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

IMAGE = "claimctl.test/sleeper:1"
PLAY = "/play"
"""The program of the image: ``/play [SECONDS] [EXIT CODE]`` ends at SIGTERM; ``/play deaf`` does
not, as some programs do."""
_SCRIPT = b"""#!/bin/sh
if [ "$1" = deaf ]; then trap "" TERM; else trap "exit 0" TERM; fi
sleep "$(case "$1" in deaf | "") echo 1000000 ;; *) echo "$1" ;; esac)" &
while kill -0 $! 2>/dev/null; do wait $!; done
exit "${2:-0}"
"""


def write_image(path: Path, busybox: Path) -> None:
    """Write the image to a file that ``ctr images import`` reads."""
    layer = _layer(busybox.read_bytes())
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": [PLAY], "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest(layer)}"]},
            "history": [{"created_by": "claimctl's tests"}],
        }
    ).encode()
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    files = {
        "config.json": config,
        "layer.tar": layer,
        "manifest.json": json.dumps(manifest).encode(),
    }
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            _add(archive, name, data)


def _layer(busybox: bytes) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as layer:
        _add(layer, "bin/busybox", busybox)
        for name in ("sh", "sleep", "kill"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(link)
        _add(layer, PLAY.removeprefix("/"), _SCRIPT)
    return written.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o755
    archive.addfile(entry, io.BytesIO(data))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
