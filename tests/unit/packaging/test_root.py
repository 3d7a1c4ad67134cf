"""The root of the repository: few entries, so that a newcomer sees what there is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MOST = 26


def test_the_root_has_few_entries() -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if listed.returncode:
        pytest.skip("this folder is no clone")
    entries = {path.partition("/")[0] for path in listed.stdout.splitlines()}
    assert "pyproject.toml" in entries
    assert len(entries) <= MOST, sorted(entries)
