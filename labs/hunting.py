"""Hunts planted bugs: each is planted in a process of its own, and the lab must find it there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from labs.findings import RunFindings
from labs.planting import Mutant

CAUGHT, MISSED, BROKEN = 0, 1, 2
"""What became of the hunt of one bug. In a process of its own these are exit codes."""
WRONG_FLAGS = 2
"""The exit code of a command that does not know a flag."""
WORDS = {CAUGHT: "caught", MISSED: "MISSED", BROKEN: "BROKEN"}
Hunt = Callable[[str], tuple[int, str]]
"""Hunts the bug of a name; returns what became of it, and a line about that."""


def first_finding(
    play: Callable[[int], RunFindings], seeds: Iterable[int], passes: Callable[[int], bool]
) -> str:
    """Play seeds until one has a finding that counts; that finding, or ''.

    Args:
        passes: whether claimctl without the bug has no finding in a seed. Otherwise it does not
            count.
    """
    for seed in seeds:
        run = play(seed)
        if not run.good and passes(seed):
            return f"{run.name}: {run.texts()[0]}"
    return ""


def passes_elsewhere(*command: str) -> bool:
    """Whether ``python -m COMMAND`` has no finding, in a process without the bug.

    Raises:
        ValueError: the command has no such flags.
    """
    whole = (sys.executable, "-m", *command)
    done = subprocess.run(whole, capture_output=True, text=True, check=False)
    if done.returncode == WRONG_FLAGS:
        raise ValueError(done.stderr)
    return done.returncode == 0


def ended(finding: str) -> int:
    """Print the finding of the hunt in this process; its exit code."""
    print(finding[:160] or "-")
    return CAUGHT if finding else MISSED


def in_process(*command: str) -> Hunt:
    """A hunt by ``python -m labs COMMAND NAME``."""

    def hunt(name: str) -> tuple[int, str]:
        whole = (sys.executable, "-m", "labs", *command, name)
        done = subprocess.run(whole, capture_output=True, text=True, check=False)
        # an exception and a missed bug have the same exit code
        code = BROKEN if done.stderr else done.returncode
        lines = (done.stderr or done.stdout).strip().splitlines()
        return code, lines[-1] if lines else ""

    return hunt


def hunt_all(names: Sequence[str], hunt: Hunt, workers: int | None = 1) -> int:
    """Hunt each bug, and print which are caught; 1 if one is not.

    Args:
        workers: how many are hunted at once; None for one on each core.
    """
    missed = 0
    with ThreadPoolExecutor(workers) as pool:
        for name, (code, line) in zip(names, pool.map(hunt, names), strict=True):
            missed += code != CAUGHT
            print(f"{WORDS.get(code, 'BROKEN')} {name}: {line}", flush=True)
    print(f"{len(names) - missed} of {len(names)} caught")
    return 1 if missed else 0


def named(bugs: Iterable[Mutant], name: str) -> Mutant:
    """The bug of a name."""
    return next(bug for bug in bugs if bug.name == name)
