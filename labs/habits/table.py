"""The matrix as text."""

from __future__ import annotations

from collections.abc import Sequence

from labs import frame
from labs.habits.exceptions import failures
from labs.habits.playing import PlayedCell


def shown(cells: Sequence[PlayedCell]) -> str:
    """One line for each cell."""
    header = ("habits (driver)", "what happens", "without claimctl", "with claimctl", "worse")
    rows = (
        (each.cell.driver, each.cell.story, each.without, each.with_claimctl, _verdict(each))
        for each in cells
    )
    return frame.table(header, rows)


def _verdict(played: PlayedCell) -> str:
    """What is worse: in capitals if nothing excuses it."""
    wrong = failures(played)
    said = [_by(name, by).upper() if name in wrong else _by(name, by) for name, by in _all(played)]
    return ", ".join(said) or "-"


def _all(played: PlayedCell) -> list[tuple[str, float]]:
    return sorted(played.worse.items())


def _by(name: str, by: float) -> str:
    return f"{name} by {by:.0f}"


def summary(cells: Sequence[PlayedCell]) -> str:
    """The counts of all cells, and what the witness says."""
    sides = {
        "without claimctl": [each.without for each in cells],
        "with claimctl": [each.with_claimctl for each in cells],
    }
    lines = []
    for name, figures in sides.items():
        ran = f"{sum(each.ran for each in figures)} of {sum(each.wanted for each in figures)}"
        refused = sum(each.refused for each in figures)
        lost = sum(each.lost for each in figures)
        in_use = sum(each.in_use for each in figures)
        text = f"{ran} pods ran, {refused} refused, {lost} devices lost, {in_use} freed in use"
        lines.append((name, text))
    bad = [each for each in cells if failures(each)]
    lines.append(("cells", f"{len(cells)}, {len(bad)} of them worse and not named"))
    accused = [text for each in cells for text in each.with_claimctl.accused]
    return "\n".join(["", frame.figures(lines), *accused])
