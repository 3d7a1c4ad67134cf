"""The picture of a claim is XML that shows every lane."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from claimctl.commands.timeline import svg
from tests.unit.commands.timeline.stories import life, timeline

SPACE = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("pods", [1, 8])
def test_everything_is_inside_the_picture(pods: int) -> None:
    root = ElementTree.fromstring(svg.document(timeline(life(pods))))
    width, height = (float(root.attrib[each]) for each in ("width", "height"))
    for each in root.iter(f"{SPACE}rect"):
        x, y = float(each.get("x", "0")), float(each.get("y", "0"))
        assert x + float(each.attrib["width"]) <= width
        assert y + float(each.attrib["height"]) <= height
    texts = ["".join(each.itertext()) for each in root.iter(f"{SPACE}text")]
    assert texts[:2] == ["Claim train/slice", "node-0/gpu-0"]
    assert ("up to 8 pods" in texts) == (pods == 8)


def test_a_holder_is_hatched_and_a_device_is_not() -> None:
    root = ElementTree.fromstring(svg.document(timeline(life())))
    kinds = [each.get("class") for each in root.iter(f"{SPACE}rect")]
    assert kinds == ["back", "device", "holder", "waiting", "pod"]
    assert ".holder { fill: url(#hatch)" in svg.document(timeline(life()))


def test_text_of_objects_cannot_become_markup() -> None:
    bad = replace(timeline(life()), claim="<a&b>")
    assert ElementTree.fromstring(svg.document(bad)).find(f"{SPACE}a") is None
