"""The cheapest set of victims that is enough."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from claimctl_reschedule.plan.victims import fewest, reprieve


def cost(sizes: Sequence[int]) -> tuple[int, int]:
    return len(sizes), sum(sizes)


def chosen(sizes: Sequence[int], needed: int) -> tuple[int, ...] | None:
    return fewest((sizes, sorted(sizes)), lambda some: sum(some) >= needed, cost, len)


def test_the_first_are_spared_if_the_rest_is_enough() -> None:
    assert reprieve((5, 4, 3), lambda some: sum(some) >= 6) == (4, 3)
    assert reprieve((3, 4, 5), lambda some: sum(some) >= 6) == (4, 5)
    assert reprieve((1, 2), lambda some: sum(some) >= 6) is None


def test_of_sets_of_one_size_the_cheapest_is_taken() -> None:
    assert chosen((9, 5, 4, 1), 5) == (5,)
    assert chosen((9, 5, 4, 1), 10) == (9, 1)


def test_nothing_is_found_where_nothing_is_enough() -> None:
    assert chosen((1, 2), 4) is None
    assert chosen((), 1) is None


def test_a_set_is_found_although_all_candidates_together_are_not_enough() -> None:
    found = fewest(((1, 2, 3),), lambda some: tuple(some) == (2,), cost, len)
    assert found == (2,)


@given(st.lists(st.integers(1, 20), max_size=8), st.integers(1, 60))
def test_no_other_set_is_cheaper(sizes: list[int], needed: int) -> None:
    every = [
        cost(some)
        for number in range(len(sizes) + 1)
        for some in combinations(sizes, number)
        if sum(some) >= needed
    ]
    found = chosen(sizes, needed)
    assert (found is None) == (not every)
    if found is not None:
        assert cost(found) == min(every)
