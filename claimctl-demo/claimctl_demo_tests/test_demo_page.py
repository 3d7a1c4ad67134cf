"""The page of ``claimctl demo --html`` in a browser: at two widths, in light and dark."""

from __future__ import annotations

import pytest

from claimctl.commands.timeline import html
from claimctl_demo.story.page import page
from claimctl_demo.story.parts import Part
from claimctl_demo.story.report import Figures, Report, Step
from tests.e2e.browser import look
from tests.e2e.commands import claimctl
from tests.support.builders import after
from tests.unit.commands.timeline.stories import life, timeline

pytestmark = [pytest.mark.alone, pytest.mark.real_time(400)]
TODAY = Part("hold", "1.36")
LONG = "x" * 120
"""A word that fits into no line."""


def pages() -> dict[str, str]:
    steps = [
        Step(f"step-{number}", number != 3, 5.0, Figures(8, 9, 1), LONG, TODAY, after(number * 9))
        for number in range(1, 10)
    ]
    found = {TODAY: [timeline(life(pods=8)), timeline(life())]}
    report = Report((TODAY,), steps=steps, seconds=60.0, timelines=found)
    return {"demo": page(report), "claim": html.document(timeline(life()))}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["demo", "claim"])
async def test_the_page_is_readable(name: str, width: int, dark: bool) -> None:
    found = await look(pages()[name], width, dark=dark)
    assert found.texts > 10
    assert found.scroll <= width
    assert found.outside == []
    assert found.covering == 0
    assert found.smallest >= 12
    assert found.contrast >= 4.5
    assert (found.back < 0.05) if dark else (found.back > 0.9)


async def test_devices_holders_and_waiting_pods_differ_by_more_than_colour() -> None:
    found = await look(pages()["claim"], 1280, dark=False)
    assert found.looks == {
        "device": [False, "solid"],
        "holder": [True, "solid"],
        "waiting": [False, "dashed"],
    }


async def test_a_page_that_cannot_be_written_is_reported_before_anything_starts() -> None:
    answer = await claimctl("demo", "--html", "/nowhere/page.html")
    assert answer.code == 2
    assert answer.err == (
        "error: --html: cannot write /nowhere/page.html: No such file or directory\n"
    )
