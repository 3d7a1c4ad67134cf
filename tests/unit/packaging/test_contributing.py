"""CONTRIBUTING.md names only files, folders and commits that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\]\((docs/[^)]*)\)", PAGE)
PATHS = sorted({*LINKS, *re.findall(r"`([a-z-]+/[^\s`]*)`", PAGE)})
WHOLE_HISTORY = 1000
"""A clone with fewer commits has been cut."""
COMMITS = sorted(set(re.findall(r"`([0-9a-f]{8})`", PAGE)))


def test_every_path_exists() -> None:
    assert len(PATHS) > 20
    assert [path for path in PATHS if not (ROOT / path).exists()] == []


def test_every_commit_exists() -> None:
    git = ("git", "-C", str(ROOT))
    asked = (*git, "rev-list", "--count", "HEAD")
    counted = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    if int(counted.stdout.strip() or 0) < WHOLE_HISTORY:
        pytest.skip("this folder has no history")
    for commit in COMMITS:
        found = subprocess.run((*git, "cat-file", "-e", commit), check=False, timeout=60)
        assert found.returncode == 0, commit
    assert len(COMMITS) >= 5
