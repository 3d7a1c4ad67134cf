"""The cells of the measurement, and its table."""

from __future__ import annotations

from collections import Counter

from claimctl_demo.documents import DocumentClient
from labs.moving.cells import Closing, cells
from labs.moving.eviction import EvictionTry, Replacements
from labs.moving.lab import shown


class NoTransport:
    """Nothing is sent."""

    async def send(self, *_: object) -> None:
        raise AssertionError("sent")


def test_each_row_has_a_cell_for_each_way_to_close_the_node() -> None:
    rows = Counter(cell.row for cell in cells())
    assert set(rows.values()) == {len(Closing)}
    assert "Deployment, two claims, one held" in rows
    assert "Deployment, a claim generated for each pod, held" not in rows


def test_the_cells_of_a_row_stand_side_by_side() -> None:
    client = DocumentClient(NoTransport())  # type: ignore[arg-type]  # it is not used
    tries = [
        EvictionTry(client, cell, (), ("", ""), "", Replacements(same=number, waiting=1))
        for number, cell in enumerate(cells()[:3])
    ]
    assert shown(tries).splitlines()[2:] == [
        "| Deployment, one claim | 0 / 0 / 1 | 1 / 0 / 1 | 2 / 0 / 1 |"
    ]
