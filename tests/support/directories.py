"""Folders for the files of the servers that a test starts."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def kept_or_temporary(kept: str, prefix: str) -> Iterator[Path]:
    """A new folder below ``kept``, which stays; without ``kept`` a folder that goes with the block.

    Args:
        prefix: the beginning of the folder's name.
    """
    if not kept:
        with tempfile.TemporaryDirectory(prefix=prefix) as temporary:
            yield Path(temporary)
        return
    Path(kept).mkdir(parents=True, exist_ok=True)
    directory = tempfile.mkdtemp(prefix=prefix, dir=kept)
    print(f"logs are kept in {directory}", file=sys.stderr)
    yield Path(directory)
