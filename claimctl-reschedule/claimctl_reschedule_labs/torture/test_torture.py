"""A few schedules of torture beside runs in every test run."""

from __future__ import annotations

from collections import Counter

from claimctl_reschedule_labs.torture.rescheduling import rescheduling
from labs.torture.explorer import explore

SEEDS = (12, 18, 21, 28, 35)
"""Each of the following happens in two of them: a change of claimctl changes all schedules. In a
few others KCM's loop beside finished pods goes on, and makes them take minutes."""
DONE_BY_RUNS = (
    "moved pod",
    "room for a resize",
    "victim of a critical pod",
    "avoided node",
    "braked owner",
    "stuck pod evicted",
)
"""What the runs of ``claimctl reschedule`` do in these schedules, each at least once."""


def test_runs_of_reschedule_break_no_promise() -> None:
    done: Counter[str] = Counter()
    for seed in SEEDS:
        verdict = explore(seed, beside=rescheduling)
        assert verdict.good, verdict.shown()
        done += verdict.counts
    missing = {deed for deed in DONE_BY_RUNS if not done[deed]}
    assert not missing
