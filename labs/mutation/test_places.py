"""Where a module can be mutated, and what the switch of each place does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest

from labs.mutation import switch
from labs.mutation.places import MutationPlaces, Place

CODE = '''
"""A module."""
from __future__ import annotations

LATE = 1 < 2

class Queue:
    def first(self, a, b):
        return a and b

def plain(a):
    return 1 if a else 0

def whole(a):
    return [each for each in a if each]

def matched(a):
    match a:
        case int() if abs(a):
            return True
    return False

def within(a, b, c):
    return a < b == c

def without(a):
    if not a:
        return 1
    return 0

def alike(a):
    assert a == 1
    while True:
        return (a == 1, a == 1)
'''


@pytest.fixture(autouse=True)
def _switched_off() -> Iterator[None]:
    yield
    switch.choose(switch.OFF)
    switch.reached.clear()


@pytest.fixture
def module() -> tuple[dict[str, Any], list[Place]]:
    places = MutationPlaces()
    tree = ast.fix_missing_locations(places.planted("claimctl.queue", ast.parse(CODE)))
    names: dict[str, Any] = {}
    exec(compile(tree, "queue.py", "exec", dont_inherit=True), names)
    return names, places.found


def test_the_places_of_a_module(module: tuple[dict[str, Any], list[Place]]) -> None:
    assert [(p.function, p.source, p.change, p.occurrence) for p in module[1]] == [
        ("Queue.first", "a and b", "a or b", 0),
        ("plain", "a", "not a", 0),
        ("whole", "each", "not each", 0),
        ("matched", "abs(a)", "not abs(a)", 0),
        ("within", "a < b == c", "a >= b == c", 0),
        ("within", "a < b == c", "a <= b == c", 0),
        ("within", "a < b == c", "a < b != c", 0),
        ("without", "not a", "a", 0),
        ("alike", "a == 1", "a != 1", 0),
        ("alike", "a == 1", "a != 1", 1),
    ]


@pytest.mark.parametrize(
    ("number", "function", "given", "usual", "mutated"),
    [
        (1, "plain", (1,), 1, 0),
        (2, "whole", ([0, 1],), [1], [0]),
        (3, "matched", (0,), False, True),
        (4, "within", (2, 1, 1), False, True),
        (5, "within", (1, 1, 1), False, True),
        (6, "within", (1, 2, 2), True, False),
        (7, "without", (1,), 0, 1),
        (8, "alike", (1,), (True, True), (False, True)),
        (9, "alike", (1,), (True, True), (True, False)),
    ],
)
def test_a_switch_changes_one_place(
    number: int,
    function: str,
    given: tuple[Any, ...],
    usual: object,
    mutated: object,
    module: tuple[dict[str, Any], list[Place]],
) -> None:
    assert module[0][function](*given) == usual
    assert number in switch.reached
    switch.choose(number)
    assert module[0][function](*given) == mutated


def test_a_place_keeps_its_key_when_lines_move() -> None:
    first, second = MutationPlaces(), MutationPlaces()
    first.planted("claimctl.queue", ast.parse(CODE))
    second.planted("claimctl.queue", ast.parse(CODE.replace("LATE = 1 < 2", "LATE = 1\n\n")))
    assert [place.key for place in first.found] == [place.key for place in second.found]
    assert [place.line for place in first.found] != [place.line for place in second.found]
