"""Chooses the places to mutate. A place keeps its rank when the code around it changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256

from labs.mutation.places import Place


def sample(places: Iterable[Place], count: int, seed: int) -> list[Place]:
    """``count`` places, as many of each package as of every other, where there are enough.

    Args:
        places: all places.
        count: how many to choose.
        seed: another seed chooses other places.
    """

    def rank(place: Place) -> bytes:
        return sha256(f"{seed} {place.key}".encode()).digest()

    packages: dict[str, list[Place]] = defaultdict(list)
    for place in sorted(places, key=rank):
        packages[place.module.split(".")[1]].append(place)
    chosen: list[Place] = []
    left = sorted(packages.values(), key=len)
    while left:
        share = -(-(count - len(chosen)) // len(left))
        chosen += left.pop(0)[: min(share, count - len(chosen))]
    return sorted(chosen, key=lambda place: (place.module, place.line, place.key))
