"""The root of the repository: few entries, so that a newcomer sees what there is."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
MOST = 26


def test_the_root_has_few_entries() -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True, timeout=60
    )
    entries = {path.partition("/")[0] for path in listed.stdout.splitlines()}
    assert "pyproject.toml" in entries
    assert len(entries) <= MOST, sorted(entries)
