"""Recorded stories of user actions: the embedded cluster does what the real one did."""

from __future__ import annotations

from pathlib import Path

import pytest

from judges.differential.actions.judge import differences
from judges.differential.actions.recording import load, recordings
from judges.differential.actions.rehearsal import on_embedded


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.stem)
def test_a_story_goes_as_on_the_real_cluster(path: Path) -> None:
    version, story, theirs = load(path)
    ours = on_embedded((version, version >= (1, 36)), story, "s0")
    shown = [
        f"after step {difference.step}: {difference.shown()}"
        for difference in differences(theirs, ours)
    ]
    assert shown == []
