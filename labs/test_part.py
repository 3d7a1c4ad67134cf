"""The part of a lab that a test run plays follows from the commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

from labs.part import VARIABLE, again, part


def commit(folder: Path, text: str) -> None:
    """Make a commit with the text as its message."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    command = ("git", *who, "commit", "--quiet", "--allow-empty", "--message", text)
    subprocess.run(command, cwd=folder, check=True)


def test_each_commit_has_its_part_and_keeps_it(tmp_path: Path) -> None:
    subprocess.run(("git", "init", "--quiet"), cwd=tmp_path, check=True)
    commit(tmp_path, "first")
    first = part(tmp_path, {})
    assert part(tmp_path, {}) == first
    commit(tmp_path, "second")
    assert part(tmp_path, {}) != first
    subprocess.run(("git", "checkout", "--quiet", "HEAD~1"), cwd=tmp_path, check=True)
    assert part(tmp_path, {}) == first


def test_without_a_checkout_the_version_decides(tmp_path: Path) -> None:
    assert part(tmp_path, {}) == part(tmp_path / "elsewhere", {})


def test_a_checkout_without_a_commit_has_a_part(tmp_path: Path) -> None:
    subprocess.run(("git", "init", "--quiet"), cwd=tmp_path, check=True)
    assert part(tmp_path, {}) == part(tmp_path / "elsewhere", {})


def test_another_part_can_be_chosen(tmp_path: Path) -> None:
    assert part(tmp_path, {VARIABLE: "7"}) == 7
    assert again(7) == f"{VARIABLE}=7"
