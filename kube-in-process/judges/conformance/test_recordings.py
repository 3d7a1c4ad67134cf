"""The embedded server answers as real ones were recorded to, but for what one list names."""

from __future__ import annotations

import pytest
from kube_in_process.virtual import run

from judges.conformance.replay import Recording, recordings
from judges.conformance.report import ALLOWED, entries, report
from judges.conformance.stages import play

_RECORDINGS = {recording.name: recording for recording in recordings()}


@pytest.mark.parametrize("recording", _RECORDINGS.values(), ids=list(_RECORDINGS))
def test_a_recording_is_answered_as_by_the_real_server(recording: Recording) -> None:
    replay = report(recording.name, run(play(recording)))
    new = [f"[{result.index}] {result.note}: {difference}" for result, difference in replay.new]
    assert new == []
    assert replay.stale == ()


def test_every_listed_difference_names_a_recording() -> None:
    assert {entry.file for entry in entries(ALLOWED)} <= set(_RECORDINGS)


def test_every_allowed_difference_has_a_reason() -> None:
    assert all(entry.reason for entry in entries(ALLOWED))


def test_few_steps_have_allowed_differences() -> None:
    recorded = [step for recording in _RECORDINGS.values() for step in recording.steps]
    steps = len(recorded) + sum(len(step.get("during", ())) for step in recorded)
    listed = {(entry.file, entry.step) for entry in entries(ALLOWED)}
    assert len(listed) <= 0.03 * steps
