"""A small part of the torture tests in every test run; the commit selects the part."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from labs.part import again, part
from labs.torture.explorer import explore
from labs.torture.perturbations import perturb, points

ROOT = Path(__file__).parents[2]
SHARDS = 730
"""A test run tries one perturbation in so many."""
SEEDS = 12
RESCHEDULE_SEEDS = (3, 12, 20, 33, 67)
"""Each of the following happens in two of them: a change of claimctl changes all schedules. In a
few others (58 and 79 now) KCM's loop beside finished pods goes on, and makes them take minutes."""
DONE_BY_RUNS = (
    "moved pod",
    "room for a resize",
    "victim of a critical pod",
    "avoided node",
    "braked owner",
    "stuck pod evicted",
)
"""What the runs of ``claimctl reschedule`` do in these schedules, each at least once."""


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


def test_runs_of_reschedule_break_no_promise() -> None:
    done: Counter[str] = Counter()
    for seed in RESCHEDULE_SEEDS:
        verdict = explore(seed, reschedule=True)
        assert verdict.good, "\n".join([str(verdict), *verdict.log])
        done += verdict.counts
    missing = {deed for deed in DONE_BY_RUNS if not done[deed]}
    assert not missing


PRINT_DIGESTS = """
from labs.torture.explorer import explore
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


def test_a_planted_bug_is_caught() -> None:
    command = (sys.executable, "-m", "labs", "torture-mutants", "ignore ghosts")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "DeallocatedUnderGhost" in done.stdout
