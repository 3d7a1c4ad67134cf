"""Which places a seed chooses."""

from __future__ import annotations

from dataclasses import replace

from labs.mutation.places import Place
from labs.mutation.sampling import sample


def _places(package: str, count: int) -> list[Place]:
    return [
        Place(f"claimctl.{package}.queue", "wait", f"a == {number}", f"a != {number}", 0, number)
        for number in range(count)
    ]


PLACES = _places("kube", 100) + _places("controller", 100) + _places("downgrade", 5)


def test_each_package_gives_as_many_places_as_it_can() -> None:
    chosen = sample(PLACES, 45, seed=1)
    packages = [place.module.split(".")[1] for place in chosen]
    assert [packages.count(name) for name in ("kube", "controller", "downgrade")] == [20, 20, 5]
    assert len(set(chosen)) == 45


def test_a_seed_repeats_and_another_one_chooses_others() -> None:
    assert sample(PLACES, 45, seed=1) == sample(list(reversed(PLACES)), 45, seed=1)
    assert sample(PLACES, 45, seed=1) != sample(PLACES, 45, seed=2)


def test_a_change_elsewhere_leaves_the_other_places_chosen() -> None:
    chosen = sample(PLACES, 45, seed=1)
    moved = [replace(place, line=place.line + 7) for place in PLACES if place != chosen[-1]]
    again = {place.key for place in sample(moved, 45, seed=1)}
    assert {place.key for place in chosen[:-1]} <= again


def test_no_more_places_are_chosen_than_there_are() -> None:
    assert len(sample(PLACES, 1000, seed=1)) == len(PLACES)
