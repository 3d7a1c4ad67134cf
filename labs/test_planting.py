"""A bug replaces one piece of one function, found by the syntax tree."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from labs.findings import RunFindings
from labs.habits.planted import TAKEN_OUT
from labs.hunting import BROKEN, CAUGHT, MISSED, ended, first_finding, hunt_all, in_process
from labs.kinds.bugs import BUGS
from labs.planting import Mutant, NoPlace, plant
from labs.sticky import mutants as sticky
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


def test_the_first_finding_ends_a_hunt(capsys: pytest.CaptureFixture[str]) -> None:
    runs = iter([RunFindings("one"), RunFindings("two", leaks=["a claim"]), RunFindings("three")])
    assert ended(first_finding(runs)) == CAUGHT
    assert [run.name for run in runs] == ["three"]
    assert ended(first_finding([])) == MISSED
    assert capsys.readouterr().out == "run 2, two: leaks: a claim\n-\n"


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
