"""A small part of the schedules in every test run; the commit selects the part."""

from __future__ import annotations

import pytest

from labs.hunting import CAUGHT, in_process
from labs.kinds.grammar import ATOMS, EMPTY, RandomRule, Says
from labs.kinds.judge import Sample, is_justified
from labs.kinds.playing import play
from labs.part import again, part

SEEDS, PARTS = 25, 4


@pytest.mark.parametrize("quarter", range(PARTS))
def test_schedules_of_the_part_free_no_device_without_a_reason(quarter: int) -> None:
    chosen = part()
    first = (chosen * PARTS + quarter) * SEEDS
    for seed in range(first, first + SEEDS):
        played = play(seed)
        assert played.good, f"{again(chosen)}\n{played.shown()}"


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(924, id="a second reservation, after the kind had vanished"),
        pytest.param(4539, id="an end that was over again before the kind was served"),
        pytest.param(4968, id="children of a later workload, whose pods never named the claim"),
        pytest.param(2580, id="a second reservation, beside a rule with a wrong name"),
        pytest.param(3518, id="a cached workload that went with its definition"),
        pytest.param(9703949, id="a workload that asks for nothing after one that left its hold"),
        pytest.param(74171489, id="a workload without pods after one that left its hold"),
    ],
)
def test_schedules_that_found_a_fault_are_good_now(seed: int) -> None:
    played = play(seed)
    assert played.good, played.shown()


def test_a_planted_bug_is_found() -> None:
    hunt = in_process("kinds", "--schedules=60", "--bug")
    code, line = hunt("take an expression that fails for true")
    assert code == CAUGHT, line
    assert "without a reason" in line


def test_the_judge_knows_what_a_rule_says() -> None:
    done = RandomRule(ended=ATOMS[1])
    assert done.says(EMPTY) is Says.UNKNOWN
    assert done.says({"metadata": {}, "status": {"phase": "Running"}}) is Says.WANTED
    over = {"metadata": {"generation": 2}, "status": {"phase": "Done", "observedGeneration": 2}}
    assert done.says(over) is Says.OVER
    assert done.says(over | {"metadata": {"generation": 3}}) is Says.WANTED


def test_a_release_needs_a_reason_that_lasted() -> None:
    hold = (("WhileRunning", 20.0),)
    wanted = Sample(0.0, ((Says.WANTED, False),), hold)
    idle = Sample(100.0, ((Says.IDLE, False),), hold)
    over = Sample(100.0, ((Says.OVER, False),), hold)
    assert not is_justified([wanted], 500.0)
    assert not is_justified([wanted, idle], 110.0)
    assert is_justified([wanted, idle], 121.0)
    assert is_justified([wanted, over], 101.0)
    assert not is_justified([Sample(0.0, ((Says.OVER, None),), hold)], 500.0)
    assert not is_justified([Sample(0.0, ((Says.OVER, False),), (("Manual", 0.0),))], 500.0)
