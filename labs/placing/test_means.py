"""The cells of the measurement, and its table."""

from __future__ import annotations

from collections import Counter

from claimctl_demo.documents import DocumentClient
from labs.placing.lab import shown
from labs.placing.means import Means, cells, deployment
from labs.placing.placement import PlacementTry


class NoTransport:
    """Nothing is sent."""

    async def send(self, *_: object) -> None:
        raise AssertionError("sent")


def test_each_means_is_tried_with_and_without_room() -> None:
    assert [(cell.means, cell.room) for cell in cells(admission=True)] == [
        (means, room) for means in Means for room in (True, False)
    ]
    assert Means.ADMISSION not in {cell.means for cell in cells(admission=False)}


def test_the_cells_of_a_row_stand_side_by_side() -> None:
    client = DocumentClient(NoTransport())  # type: ignore[arg-type]  # it is not used
    tries = [
        PlacementTry(client, cell, ("a", "b"), Counter(a=number, b=1), Counter({"": 2}))
        for number, cell in enumerate(cells(admission=False)[:2])
    ]
    assert shown(tries).splitlines()[2:] == [
        "| nothing | 0 / 1 / 0 | 0 / 0 / 2 | 1 / 1 / 0 | 0 / 0 / 2 |"
    ]


def test_pods_of_a_cell_stay_on_its_nodes() -> None:
    body = deployment(cells(admission=False)[3].namespace, "owner", 4)
    pod = body["spec"]["template"]["spec"]
    assert (body["metadata"]["namespace"], pod["nodeSelector"]) == (
        "cell-3",
        {"claimctl.io/cell": "cell-3"},
    )
