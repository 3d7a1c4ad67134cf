"""The embedded server answers as real ones were recorded to, but for what two lists name."""

from __future__ import annotations

import pytest

from tests.conformance.replay import Recording, recordings
from tests.conformance.report import ALLOWED, KNOWN, entries, report
from tests.conformance.stages import play
from tests.support.virtual import run

_RECORDINGS = {recording.name: recording for recording in recordings()}


@pytest.mark.parametrize("recording", _RECORDINGS.values(), ids=list(_RECORDINGS))
def test_a_recording_is_answered_as_by_the_real_server(recording: Recording) -> None:
    found = report(recording.name, run(play(recording)))
    new = [f"[{result.index}] {result.note}: {difference}" for result, difference in found.new]
    assert new == []
    assert found.stale == ()


def test_every_listed_difference_names_a_recording() -> None:
    listed = {entry.file for path in (ALLOWED, KNOWN) for entry in entries(path)}
    assert listed <= set(_RECORDINGS)


def test_every_allowed_difference_has_a_reason() -> None:
    assert all(entry.reason for entry in entries(ALLOWED))
