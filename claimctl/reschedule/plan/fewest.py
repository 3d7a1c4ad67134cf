"""The cheapest set of victims that is enough.

First all candidates are taken, and then one after the other is left alone, if the rest is still
enough: once in the order of their worth, once the smallest first. The cheaper result is then
compared with every smaller set, as long as the steps last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from typing import Any, TypeVar

T = TypeVar("T")
Enough = Callable[[Sequence[T]], bool]
MOST_STEPS = 20_000
"""So many sets are looked at."""


def reprieve(candidates: Sequence[T], enough: Enough[T]) -> tuple[T, ...] | None:
    """Drop each candidate in turn if the others still suffice; return the rest.

    None if all of them are not enough.
    """
    if not enough(candidates):
        return None
    left = list(candidates)
    for candidate in candidates:
        rest = [other for other in left if other is not candidate]
        if enough(rest):
            left = rest
    return tuple(left)


def fewest(
    orders: Sequence[Sequence[T]],
    enough: Enough[T],
    cost: Callable[[Sequence[T]], Any],
    size: Callable[[Sequence[T]], int],
) -> tuple[T, ...] | None:
    """The cheapest set of candidates that is enough; None if none was sets.

    Args:
        orders: the candidates in several orders, in each the first to be spared first.
        enough: whether a set is enough. A larger set need not be.
        cost: the least is taken; ``size`` must be its first part.
        size: at least the number of candidates.
    """
    sets = [left for order in orders if (left := reprieve(order, enough)) is not None]
    best = min(sets, key=cost, default=None)
    for chosen in islice(_smaller(orders[0], best, size), MOST_STEPS):
        if (best is None or cost(chosen) < cost(best)) and enough(chosen):
            best = chosen
    return best


def _smaller(
    candidates: Sequence[T], best: Sequence[T] | None, size: Callable[[Sequence[T]], int]
) -> Iterator[tuple[T, ...]]:
    """All sets that are not larger than ``best``, those with few candidates first."""
    largest = len(candidates) if best is None else size(best)
    for number in range(1, min(largest, len(candidates)) + 1):
        yield from combinations(candidates, number)
