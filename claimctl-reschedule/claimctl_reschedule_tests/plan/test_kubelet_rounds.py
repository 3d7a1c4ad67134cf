"""Rounds of evictions that did not help."""

from __future__ import annotations

from datetime import timedelta

from claimctl_reschedule.plan.kubelet import in_vain
from claimctl_reschedule.shapes.records import RecordedResize
from claimctl_reschedule_tests.support.scheduling import NOW


def round_of(name: str, minutes: float | None) -> RecordedResize:
    since = NOW - timedelta(minutes=minutes) if minutes is not None else None
    return RecordedResize(pod_uid=name, name=name, since=since, victims=("a", "b"))


def test_a_round_is_in_vain_after_ten_minutes() -> None:
    rounds = [round_of("young", 9.9), round_of("old", 11), round_of("timeless", None)]
    found = [(each.name, what) for each, what in in_vain(rounds, NOW)]
    assert found == [("old", "its resize waits although 2 pods left for it 11 minutes ago")]
