"""The page about a claim: whole, escaped, and readable without colours."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from msgspec.structs import replace

from claimctl.commands.timeline import html
from claimctl.commands.timeline.model import Mark
from tests.support.builders import after
from tests.unit.commands.timeline.stories import life, timeline

VOID = {"meta", "link", "br", "img"}


class Balance(HTMLParser):
    """Fails where a tag is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that closes itself leaves nothing open."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> Balance:
    found = Balance()
    found.feed(page)
    assert found.open == []
    return found


def test_the_page_is_whole_and_loads_nothing() -> None:
    page = html.document(timeline(life(pods=8)))
    told = " ".join(read(page).text)
    assert "Claim train/slice" in told
    assert "up to 8 run" in told
    assert re.findall(r"(?:src|href)=|https?://|@import|url\(", page) == []
    assert "prefers-color-scheme: dark" in page


def test_lanes_differ_by_more_than_colour() -> None:
    page = html.document(timeline(life()))
    assert 'class="span device"' in page
    assert 'class="span holder"' in page
    assert "repeating-linear-gradient" in page
    assert "Hatched: a workload holds it" in page


def test_the_chart_says_in_words_what_it_shows() -> None:
    told = html.describe(timeline(life()))
    assert told == (
        "node-0/gpu-0 from 12:00:02 to 12:01:00; deployments/train from 12:00:05 to 12:01:00; "
        "at most 1 pods at a time."
    )


def test_bars_are_where_their_times_are() -> None:
    page = html.chart(timeline(life()))
    assert 'class="span device" style="left:2.00%;width:58.00%"' in page


def test_text_of_objects_cannot_become_markup() -> None:
    bad = Mark(after(1), "Pod/x", "Bad", "<script>alert(1)</script>", warning=True)
    page = html.document(replace(timeline(life()), marks=(bad,)))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_labels_of_steps_that_are_close_share_one() -> None:
    steps = [html.ChartStep(after(at), str(at)) for at in (0, 1, 2, 50, 99)]
    chart = html.chart(timeline(life()), steps)
    assert re.findall(r'<span class="" style="left:[\d.]+%">([^<]+)', chart) == ["0–2", "50"]
    assert re.findall(r'<span class="last" style="left:[\d.]+%">([^<]+)', chart) == ["99"]


def test_a_letter_stands_above_its_bar() -> None:
    """Short bars are narrower than a letter. A browser measures the same, where there is one."""
    shown = timeline(life())
    row = html.devices([shown], {(shown.namespace, shown.claim): "F"}, ())
    assert '<div class="track letters">' in row
    assert '<span class="letter">F</span>' in row
    (rule,) = re.findall(r"\.letter \{([^}]*)\}", html.style_of("page.css"))
    assert "position: absolute; bottom: 100%;" in rule
