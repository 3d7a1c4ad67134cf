"""A small part of the torture tests in every test run; the commit selects the part."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from labs.hunting import CAUGHT, in_process
from labs.part import again, part
from labs.torture.explorer import Schedule, begun, explore
from labs.torture.lone_users import LoneUsers
from labs.torture.perturbations import perturb, points
from labs.torture.place import TROUBLE
from labs.torture.user_actions import Nothing

ROOT = Path(__file__).parents[2]
SHARDS = 730
"""A test run tries one perturbation in so many."""
SEEDS = 12


def test_schedules_of_the_part_break_no_promise() -> None:
    chosen = part()
    for seed in range(chosen * SEEDS, (chosen + 1) * SEEDS):
        verdict = explore(seed)
        assert verdict.good, "\n".join([again(chosen), str(verdict), *verdict.log])


def test_perturbations_of_the_part_break_no_promise() -> None:
    chosen = part()
    for point in points()[chosen % SHARDS :: SHARDS]:
        verdict = perturb(point)
        assert verdict.good, "\n".join([again(chosen), str(verdict), *verdict.log])


PRINT_DIGESTS = """
from labs.torture.explorer import Schedule, begun, explore
from labs.torture.lone_users import LoneUsers
from labs.runs import prepare
prepare()
print([explore(seed).digest for seed in range(100, 104)])
"""


def test_a_seed_repeats_a_schedule_byte_for_byte() -> None:
    def digests(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = (sys.executable, "-c", PRINT_DIGESTS)
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert digests("1") == digests("2")


async def test_no_action_lets_time_pass_but_the_one_that_sleeps() -> None:
    async with begun(Schedule.of(7), LoneUsers) as playing:
        users = playing.users
        for action in dict.fromkeys(users.actions()):
            if action != users.change_mind:
                with suppress(Nothing, *TROUBLE), pytest.raises(StopIteration):
                    action().send(None)


def test_a_planted_bug_is_caught() -> None:
    code, line = in_process("torture-mutants")("ignore ghosts")
    assert code == CAUGHT, line
    assert "DeallocatedUnderGhost" in line
