"""When a cell counts as worse with claimctl, and which cells are excused."""

from __future__ import annotations

from pathlib import Path

import pytest
from kube_in_process.habits.registry import HABITS, habit

from labs.habits.drivers import UNKNOWN, DescribedDriver
from labs.habits.exceptions import EXCEPTIONS, failures, not_needed
from labs.habits.figures import BAD, NEVER, Figures, worse
from labs.habits.playing import HabitCell, PlayedCell
from labs.habits.stories import STORIES
from labs.habits.table import shown

PAGE = Path(__file__).parent / "README.md"


@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        (Figures(), Figures(refused=2, lost=1, in_use=3), {}),
        (Figures(wanted=2, ran=1), Figures(wanted=2, ran=2), {"ran": 1}),
        (Figures(wanted=2, ran=2), Figures(wanted=2, ran=1), {}),
        (Figures(refused=3), Figures(refused=1), {"refused": 2}),
        (Figures(broken=1, left=1), Figures(), {"broken": 1, "left": 1}),
        # a promise of claimctl, whatever happens without it
        (Figures(lost=1, in_use=2), Figures(lost=1, in_use=3), {"lost": 1, "in_use": 2}),
        (Figures(waited=8), Figures(), {}),
        (Figures(waited=9), Figures(), {"waited": 9}),
        # kubelets try again at different times
        (Figures(waited=90, refused=1), Figures(waited=60, refused=1), {}),
        (Figures(accused=["x"]), Figures(), {"accused": 1}),
    ],
)
def test_what_is_worse(ours: Figures, theirs: Figures, found: dict[str, float]) -> None:
    assert dict(worse(ours, theirs)) == found


def played(name: str, driver: str, story: str, ours: Figures) -> PlayedCell:
    cell = HabitCell(DescribedDriver(driver, (habit(name),)), story)
    return PlayedCell(cell, Figures(), ours)


def test_an_exception_excuses_its_figures_alone_and_no_more_than_it_says() -> None:
    once, twice = Figures(refused=1, waited=90), Figures(refused=2, waited=90)
    assert failures(played("wants-one-pod", UNKNOWN, "start", once)) == {}
    assert failures(played("wants-one-pod", UNKNOWN, "start", twice)) == {"refused": 2}
    assert failures(played("wants-one-pod", "dra.net", "start", once)) == {
        "refused": 1,
        "waited": 90,
    }
    assert failures(played("slow", UNKNOWN, "start", once)) == {"refused": 1, "waited": 90}
    assert (
        failures(played("fails-to-unprepare", UNKNOWN, "force deletion", Figures(in_use=1))) == {}
    )
    assert failures(played("fails-to-unprepare", UNKNOWN, "start", Figures(in_use=1))) == {
        "in_use": 1
    }


def test_an_exception_that_no_cell_needs_is_found() -> None:
    cells = [played("fails-to-unprepare", UNKNOWN, "force deletion", Figures(in_use=1))]
    assert len(not_needed(cells)) == len(EXCEPTIONS) - 1


def test_exceptions_name_what_there_is_and_the_page_gives_their_reasons() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for each in EXCEPTIONS:
        assert set(each.habits) <= HABITS.keys()
        assert set(each.stories) <= STORIES.keys()
        assert each.allowed.keys() <= {*BAD, *NEVER, "ran", "waited"}
        assert each.reason in page


def test_the_table_shouts_what_is_not_named() -> None:
    cells = [
        played("fails-to-unprepare", UNKNOWN, "force deletion", Figures(in_use=1)),
        played("slow", UNKNOWN, "start", Figures(refused=1)),
    ]
    last = [line.removesuffix(" |").split(" | ")[-1] for line in shown(cells).splitlines()]
    assert last[2:] == ["in_use by 1", "REFUSED BY 1"]
