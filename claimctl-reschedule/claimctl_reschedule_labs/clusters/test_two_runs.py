"""The large clusters, and the table of two runs on each."""

from __future__ import annotations

from claimctl_reschedule_labs.clusters.making import LARGE_PODS, large
from claimctl_reschedule_labs.clusters.two_runs import HEADER, Ran, TwoRuns, table


def test_a_large_cluster_is_made_of_its_seed_alone() -> None:
    made = large(3)
    assert made == large(3) != large(4)
    assert sum(each.pods for wave in made.waves for each in wave.workloads) >= LARGE_PODS


def test_each_resting_cluster_has_a_row_and_the_last_one_is_their_sum() -> None:
    runs = (Ran(5, 1, 2, 3, 0.25, 50), Ran(0, 0, 0, 3, 0.0, 28))
    rows = table([TwoRuns(0, 90, 4, runs), TwoRuns(1, 80, 0, ()), TwoRuns(2, 100, 1, runs)])
    lines = [line.strip("| ").split(" | ") for line in rows.splitlines()]
    assert {len(line) for line in lines} == {len(HEADER)}
    assert [line[0] for line in lines[2:]] == ["0", "2", "all 2"]
    assert lines[-1][1:] == ["190", "5", "10 + 0", "2 + 0", "4 + 0", "6 + 6", "0.5 + 0", "100 + 56"]
