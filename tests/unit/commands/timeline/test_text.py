"""The timeline in a terminal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.commands.timeline.model import GONE, UNKNOWN, Lane, Timeline, TimelineSpan
from claimctl.commands.timeline.text import ASCII, MARKS, lines
from tests.support.builders import after
from tests.unit.commands.timeline.stories import life, timeline


def test_a_bar_for_each_device_holder_and_pod() -> None:
    assert lines(timeline(life()), width=60)[:7] == [
        "Claim train/slice",
        "2026-03-01 12:00:00 to 12:01:40 UTC (100s)",
        "",
        f"node-0/gpu-0       ▒{'█' * 23}▒{'·' * 16}",
        f"deployments/train  ··▒{'█' * 21}▒{'·' * 16}",
        f"pods/a             ·▒{'█' * 14}▒{'·' * 24}",
        f"{' ' * 19}12:00:00{' ' * 25}12:01:40",
    ]


@pytest.mark.parametrize("pods", [1, 8])
def test_what_is_not_known_has_a_sign_of_its_own(pods: int) -> None:
    shown = timeline(life(pods=pods))
    unknown = (
        TimelineSpan(Lane.DEVICE, "node-0/gpu-0", shown.begin, after(2), UNKNOWN),
        TimelineSpan(Lane.POD, GONE, shown.begin, None, UNKNOWN),
    )
    found = lines(replace(shown, spans=(*shown.spans, *unknown)), width=140)
    drawn = (line for line in found if "  " in line and ("█" in line or "??" in line))
    bars = {name.strip(): bar for name, bar in (line.rsplit("  ", 1) for line in drawn)}
    assert bars["node-0/gpu-0"].startswith("??▒█")
    assert set(bars["pods/(gone)"]) == {"?"}
    assert set(bars["deployments/train"]) == {"·", "▒", "█"}


def test_many_pods_are_columns_as_high_as_they_are_many() -> None:
    found = lines(timeline(life(pods=8)), width=60)
    running, waiting = (line for line in found if "(up to 8)" in line)
    assert running == f"pods (up to 8)     ·{'█' * 16}{'·' * 24}"
    assert waiting == f"waiting (up to 8)  ██{'·' * 39}"


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_names_are_never_cut(width: int) -> None:
    found = lines(timeline(life()), width=width)
    for name in ("node-0/gpu-0", "deployments/train", "pods/a"):
        assert any(line.startswith(name) for line in found)
    if width >= 40:
        assert max(map(len, found[:7])) <= max(width, 43)


def test_a_terminal_without_blocks_gets_ascii() -> None:
    assert "".join(ASCII).isascii()
    assert "\n".join(lines(timeline(life()), signs=ASCII)).isascii()


def test_a_gap_that_is_smaller_than_a_column_shows() -> None:
    bar = lines(timeline(life(), end=10_000), width=60)[3]
    assert "▒" in bar
    assert "█" not in bar


def test_only_the_last_marks_are_printed_and_the_rest_is_counted() -> None:
    one = timeline(life())
    many = Timeline(
        one.namespace, one.claim, one.begin, one.end, one.spans, one.marks * 10, one.source
    )
    found = lines(many)
    assert f"{10 * len(one.marks) - MARKS} earlier marks are in -o json" in found
    assert found[-1] == "12:01:00  ResourceClaim/slice  Deallocated: node-0/gpu-0 freed by claimctl"
