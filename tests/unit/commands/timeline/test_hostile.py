"""Pictures of hostile names are those of harmless ones, under other names."""

from __future__ import annotations

from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from claimctl.commands.timeline import html, svg, text
from claimctl.commands.timeline.model import Lane, Mark, Timeline, TimelineSpan
from claimctl.text import visible
from tests.support.builders import after
from tests.support.hostile import TEXT, forged_lines, obeyed, texts
from tests.unit.commands.timeline.stories import life, timeline

NAMES = 12


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes, and its texts in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.form: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.form.append(f"<{tag} {' '.join(name for name, _ in attrs)}>")
        self.texts += [value or "" for name, value in attrs if name in {"title", "aria-label"}]

    def handle_endtag(self, tag: str) -> None:
        self.form.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.form.append("text")
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.form.append("comment")

    def unknown_decl(self, data: str) -> None:
        self.form.append("declaration")


def drawn(names: list[str]) -> Timeline:
    """A timeline in which every text is one of the names."""
    lanes = ((Lane.DEVICE, ""), (Lane.DEVICE, "Unknown"), (Lane.HOLDER, ""), (Lane.POD, "Running"))
    spans = tuple(
        TimelineSpan(lane, name, after(1), after(9), state)
        for (lane, state), name in zip(lanes, names[:4], strict=True)
    )
    marks = (
        Mark(after(2), names[4], names[5], names[6]),
        Mark(after(3), names[7], names[8], names[9], warning=True),
    )
    made = timeline(life())
    return replace(made, claim=names[10], spans=spans, marks=marks, notes=(names[11],))


HARMLESS = drawn([f"name{number}" for number in range(NAMES)])


def read(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    elements.close()
    return elements


@pytest.mark.parametrize("seed", range(30))
def test_a_name_is_a_text_in_a_page(seed: int) -> None:
    names = texts(seed, NAMES)
    page = html.document(drawn(names))
    elements = read(page)
    assert elements.form == read(html.document(HARMLESS)).form
    told = "\0".join(elements.texts)
    assert [name for name in names if visible(name) not in told] == []
    assert obeyed(page) == set()


@pytest.mark.parametrize("seed", range(30))
def test_a_name_is_a_text_in_a_picture(seed: int) -> None:
    names = texts(seed, NAMES)
    picture = svg.document(drawn(names))
    root, harmless = (ElementTree.fromstring(it) for it in (picture, svg.document(HARMLESS)))
    assert [(it.tag, list(it.attrib)) for it in root.iter()] == [
        (it.tag, list(it.attrib)) for it in harmless.iter()
    ]
    told = {it.text for it in root.iter()}
    assert {f"pods/{visible(names[3])}", *map(visible, names[:3])} <= told
    assert obeyed(picture) == set()


def test_no_page_and_no_line_begins_with_what_a_tenant_wrote() -> None:
    hostile = drawn([f"name{number}{TEXT}" for number in range(NAMES)])
    shown = "\n".join(map(visible, text.lines(hostile)))
    for out in (html.document(hostile), svg.document(hostile), shown):
        assert obeyed(out) == set()
        assert forged_lines(out) == []
