"""A bug replaces one piece of one function, found by the syntax tree."""

from __future__ import annotations

import ast

import pytest

from labs.torture.planting import Mutant, NoPlace

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
