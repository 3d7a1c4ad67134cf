"""Archives (.tar.gz) that are the same bytes at any time and place."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping

EXECUTABLE, READABLE = 0o755, 0o644


def pack(files: Mapping[str, tuple[bytes, int]]) -> bytes:
    """The archive of files by their names, each with its content and its mode."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()
