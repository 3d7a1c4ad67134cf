"""A bug replaces one piece of one function, found by the syntax tree."""

from __future__ import annotations

import ast
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest

from labs.findings import RunFindings
from labs.habits.planted import TAKEN_OUT
from labs.hunting import (
    BROKEN,
    CAUGHT,
    MISSED,
    ended,
    first_finding,
    hunt_all,
    in_process,
    passes_elsewhere,
)
from labs.kinds.bugs import BUGS
from labs.planting import Mutant, NoPlace, plant
from labs.sticky import lab as sticky_lab
from labs.sticky import mutants as sticky
from labs.sticky.users import StickySize
from labs.torture import mutants as torture

MUTANTS = {
    mutant.name: mutant
    for mutant in (
        *torture.MUTANTS,
        *sticky.MUTANTS,
        *BUGS,
        *(rule.mutant for rule in TAKEN_OUT),
    )
}
"""The planted bugs of all labs, by name."""

CODE = """
def wait(left):
    if left > 0:  # seconds
        return left
    return 0

class Queue:
    async def take(self, left, *, at=None, by):
        self.taken = (left
                      > 0)
        self.left = left
        return left > 0
"""


def planted(function: str, old: str, new: str) -> str:
    tree = Mutant("a bug", "queue", function, old, new).planted(ast.parse(CODE))
    return ast.unparse(tree)


@pytest.mark.parametrize(
    ("function", "old", "new", "code"),
    [
        ("wait", "left > 0", "True", "if True:\n        return left"),
        ("wait", "if left > 0: return left", "", "    pass\n    return 0"),
        ("wait", "return left\n", "return 0", "if left > 0:\n        return 0"),
        (
            "Queue.take",
            """
            self.taken = left > 0
            self.left = left
            """,
            "self.left = 0",
            "        self.left = 0\n        return left > 0",
        ),
    ],
)
def test_a_piece_is_found_whatever_its_spaces_and_comments(
    function: str, old: str, new: str, code: str
) -> None:
    assert code in planted(function, old, new)


@pytest.mark.parametrize(
    ("function", "old", "words"),
    [
        ("gone", "left", "queue has no function gone"),
        ("Gone.take", "left", "queue has no function Gone.take"),
        ("wait", "left < 0", "wait in queue has 0 times, not once: left < 0"),
        ("Queue.take", "left > 0", "Queue.take in queue has 2 times, not once: left > 0"),
    ],
)
def test_a_place_that_is_gone_or_not_the_only_one_is_named(
    function: str, old: str, words: str
) -> None:
    with pytest.raises(NoPlace, match=words):
        planted(function, old, "True")


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_changes_one_place(name: str) -> None:
    spec = find_spec(MUTANTS[name].module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    assert ast.dump(MUTANTS[name].planted(ast.parse(source))) != ast.dump(ast.parse(source))


def test_a_bug_comes_too_late_where_its_module_is_imported() -> None:
    with pytest.raises(NoPlace, match=r"labs\.planting is imported already"):
        plant(Mutant("a bug", "labs.planting", "plant", "mutant.module", "''"))


def test_the_first_finding_that_is_the_bugs_ends_a_hunt(capsys: pytest.CaptureFixture[str]) -> None:
    def play(seed: int) -> RunFindings:
        return RunFindings(f"seed {seed}", leaks=["a claim"] if seed > 1 else [])

    seeds = iter(range(5))
    # also without the bug, seed 2 has a finding
    assert ended(first_finding(play, seeds, lambda seed: seed != 2)) == CAUGHT
    assert next(seeds) == 4
    assert ended(first_finding(play, range(2), lambda _: True)) == MISSED
    assert capsys.readouterr().out == "seed 3: leaks: a claim\n-\n"


def test_a_lab_that_does_not_know_a_flag_judges_no_finding() -> None:
    with pytest.raises(ValueError, match="--no-such-flag"):
        passes_elsewhere("labs", "sticky", "--no-such-flag=1")


def test_a_bug_about_sticky_claims_is_hunted_with_flags_that_their_lab_knows() -> None:
    flags = [f"--{each.name}=1" for each in fields(StickySize)]
    assert sticky_lab.parsed(flags).lws == 1


def test_a_hunt_that_cannot_begin_is_broken_and_not_caught() -> None:
    code, line = in_process("torture-mutants")("no bug of this name")
    assert code == BROKEN
    assert "no bug of this name" in line


def test_each_bug_is_listed_as_caught_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    hunts = {"one": (CAUGHT, "seen"), "two": (MISSED, "-"), "three": (BROKEN, "an error")}
    assert hunt_all(["one"], hunts.__getitem__) == 0
    assert hunt_all([*hunts], hunts.__getitem__, workers=None) == 1
    assert capsys.readouterr().out.splitlines()[2:] == [
        "caught one: seen",
        "MISSED two: -",
        "BROKEN three: an error",
        "1 of 3 caught",
    ]
