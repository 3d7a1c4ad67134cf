"""The protocol keeps its promises in every interleaving within the smaller bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

from labs.model.components import components
from labs.model.mutation import Mutation
from labs.model.mutations import LONGEST, MUTATIONS
from labs.model.played import LARGEST, PLAYED
from labs.model.scenarios import GAPS, HOLD, WINDOW, Scenario
from labs.model.search import Search
from labs.model.server import Bounds
from labs.model.space import Model, Space
from labs.model.state import ListEntry, ModelPod, put, renamed, renamed_process, watching
from labs.part import part

C = TypeVar("C", Scenario, Mutation)
_PARTS = 16
"""A test run makes one of the largest searches in so many."""
ONE_POD = Bounds(pods=1, crashes=1, actions=1)


def played(cases: Iterable[C], largest: Sequence[str], parts: int) -> list[C]:
    """The cases; of the largest only those of the part that this commit plays."""
    left_out = set(largest) - set(largest[part() % parts :: parts])
    return [case for case in cases if _name(case) not in left_out]


def _name(case: Scenario | Mutation) -> str:
    return f"{case.dialect.name}: {case.name}"


@pytest.mark.parametrize("scenario", played(PLAYED, LARGEST, _PARTS), ids=_name)
def test_every_interleaving_keeps_the_promises_and_ends_well(scenario: Scenario) -> None:
    result = Search(Model(scenario.dialect, scenario.bounds)).run()
    assert result.violations == []
    assert result.complete
    assert result.resting > 0


@pytest.mark.parametrize("mutation", played(MUTATIONS, LONGEST, len(LONGEST)), ids=_name)
def test_a_protocol_broken_on_purpose_is_found_out(mutation: Mutation) -> None:
    (violation,) = mutation.search().violations
    assert 1 < len(violation.trace) < 30


@pytest.mark.parametrize("gap", GAPS, ids=_name)
def test_what_is_taken_for_granted_is_needed(gap: Scenario) -> None:
    (violation,) = Search(Model(gap.dialect, gap.bounds)).run().violations
    assert violation.what


def test_a_scheduler_slower_than_the_binding_time_is_the_known_window_and_nothing_else() -> None:
    result = Search(Model(WINDOW.dialect, WINDOW.bounds)).run()
    assert result.violations == []
    assert set(result.window) == {
        "a pod is bound on a claim without allocation",
        "promise 1: deallocated while a pod uses the device",
    }


def test_the_largest_searches_are_known() -> None:
    assert set(LARGEST) <= set(map(_name, PLAYED))
    assert set(LONGEST) <= set(map(_name, MUTATIONS))


def test_a_search_that_is_cut_off_says_so() -> None:
    assert not Search(Model(HOLD, ONE_POD), most=100).run().complete


def test_a_search_repeats_itself() -> None:
    first, second = (Search(Model(HOLD, Bounds(pods=1, crashes=0))).run() for _ in range(2))
    assert first == second


def test_states_that_differ_by_the_names_of_pods_are_one() -> None:
    model = Model(HOLD, Bounds(pods=2, held=True))
    world = model.start()
    world = world._replace(pods=put(world.pods, 1, ModelPod.PENDING))
    process, swapped = watching(world), renamed(world, (1, 0))
    assert ListEntry.POD in world.claim.entries
    assert swapped != world
    space = Space(model)
    assert space.number(swapped, renamed_process(process, (1, 0))) == space.number(world, process)
    assert space.number(swapped, process) != space.number(world, process)


def test_states_that_differ_by_the_order_of_processes_are_one() -> None:
    model = Model(HOLD, Bounds(pods=1, processes=2))
    world = model.start()
    early, late = watching(world), watching(world)._replace(fresh=0)
    space = Space(model)
    assert space.number(world, early, late) == space.number(world, late, early)
    assert space.number(world, early, late) != space.number(world, early, early)


def test_components_are_the_circles_of_a_graph() -> None:
    targets = {0: [1], 1: [2], 2: [1, 3], 3: [3], 4: []}
    of = components(5, lambda node: iter(targets[node]))
    assert of[1] == of[2]
    assert len(set(of)) == 4
