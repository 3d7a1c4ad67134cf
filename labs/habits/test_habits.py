"""Some cells of the matrix in every test run; the commit selects them."""

from __future__ import annotations

from random import Random

import pytest

from labs.habits.drivers import drivers_of_the_matrix
from labs.habits.exceptions import failures
from labs.habits.playing import cells, play
from labs.habits.table import shown
from labs.part import again, part

COUNT = 6


@pytest.mark.parametrize("number", range(COUNT))
def test_a_cell_of_the_part_is_not_worse_with_claimctl(number: int) -> None:
    chosen = part()
    cell = Random(chosen).sample(list(cells(drivers_of_the_matrix())), COUNT)[number]
    played = play(cell)
    assert not failures(played), f"{again(chosen)}\n{shown([played])}"


def test_a_play_repeats() -> None:
    [driver, *_] = drivers_of_the_matrix()
    cell = next(cells([driver]))
    assert play(cell) == play(cell)
