"""Says which mutation is on in this process, and notes which mutable places the process reached."""

from __future__ import annotations

OFF = -1
reached: set[int] = set()
"""The numbers of the places that were evaluated."""
_chosen = OFF


def choose(number: int) -> None:
    """Switch the mutation of this number on; ``OFF`` switches all off."""
    global _chosen
    _chosen = number


def mutated(number: int) -> bool:
    """Whether the mutation of this number is on. Every mutable place asks this."""
    reached.add(number)
    return number == _chosen
