"""Strongly connected components (Tarjan), without recursion."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator


def components(number: int, targets: Callable[[int], Iterator[int]]) -> array[int]:
    """The component of each of ``number`` nodes."""
    component, low, order = (array("q", [-1]) * number for _ in range(3))
    stack: list[int] = []
    count = 0
    for root in range(number):
        if order[root] >= 0:
            continue
        work = [(root, targets(root))]
        order[root] = low[root] = count
        count += 1
        stack.append(root)
        while work:
            node, left = work[-1]
            for target in left:
                if order[target] < 0:
                    order[target] = low[target] = count
                    count += 1
                    stack.append(target)
                    work.append((target, targets(target)))
                    break
                if component[target] < 0:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    _close(node, stack, component)
    return component


def _close(node: int, stack: list[int], component: array[int]) -> None:
    while True:
        member = stack.pop()
        component[member] = node
        if member == node:
            return
