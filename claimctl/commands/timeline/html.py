"""Timelines as HTML: bars that fit any width, in one file without scripts or other files.

Devices are solid, holders are hatched, and the number of pods is a curve. So nothing depends on
colour.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files

from claimctl.commands.timeline import model
from claimctl.text import duration, visible

_APART = 0.09
"""Labels of steps that are closer than this part of the width share one label."""
_LAST = 0.9
"""The label of a step behind this place is left of its line."""
KEY = "Solid: the device is allocated. Hatched: a workload holds it. Curve: pods that run."


@dataclass(frozen=True, slots=True)
class ChartStep:
    """A numbered moment that charts show above their rows."""

    at: datetime
    label: str


def quoted(text: str) -> str:
    """Text for HTML and SVG, inside and outside of attributes."""
    return html.escape(visible(text))


def style_of(file: str) -> str:
    """A style sheet of this package."""
    return files(__package__).joinpath(file).read_text(encoding="utf-8")


def page(title: str, body: str) -> str:
    """A whole document."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{quoted(title)}</title>\n<style>\n{style_of('page.css')}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{quoted(title)}</h1>\n{body}</main>\n</body>\n</html>\n"
    )


def document(timeline: model.Timeline) -> str:
    """The page about one claim."""
    title = f"Claim {timeline.namespace}/{timeline.claim}"
    notes = "".join(f'<p class="quiet">{quoted(note)}</p>\n' for note in timeline.remarks)
    return page(
        title,
        f'<p class="quiet">{quoted(KEY)}</p>\n{chart(timeline)}{notes}<h2>What happened</h2>\n'
        f"{marks(timeline.marks)}",
    )


def chart(timeline: model.Timeline, steps: Sequence[ChartStep] = ()) -> str:
    """The rows of one claim: its devices, holders and pods."""
    rows = [
        _row(name, timeline, [_bar(span, timeline) for span in spans])
        for name, spans in timeline.bars
    ]
    if timeline.many_pods:
        rows.append(_curve(timeline))
    return _figure(timeline, steps, rows, describe(timeline))


def devices(
    timelines: Sequence[model.Timeline],
    letters: Mapping[tuple[str, str], str],
    steps: Sequence[ChartStep],
) -> str:
    """One row for each device, with the claims that had it, by their letters."""
    begin = min(timeline.begin for timeline in timelines)
    end = max(timeline.end for timeline in timelines)
    frame = model.Timeline("", "", begin, end, (), (), model.Source.HISTORY)
    rows: dict[str, list[str]] = {}
    for timeline in timelines:
        letter = letters[timeline.namespace, timeline.claim]
        for span in timeline.of(model.Lane.DEVICE):
            rows.setdefault(span.name, []).append(_bar(span, frame, letter, timeline))
    drawn = [_row(name, frame, bars, " letters") for name, bars in sorted(rows.items())]
    legend = [f"{letter}: claim {space}/{name}" for (space, name), letter in letters.items()]
    return _figure(frame, steps, drawn, f"Which claim had which device. {'; '.join(legend)}.")


def describe(timeline: model.Timeline) -> str:
    """The chart as a sentence, for readers who do not see it."""
    texts = [
        f"{span.name} from {span.start:%H:%M:%S} to {(span.end or timeline.end):%H:%M:%S}"
        for lane in (model.Lane.DEVICE, model.Lane.HOLDER)
        for span in timeline.of(lane)
    ]
    pods = model.most(model.levels(timeline.of(model.Lane.POD, model.RUNNING)))
    return f"{'; '.join([*texts, f'at most {pods} pods at a time'])}."


def marks(marks: Iterable[model.Mark]) -> str:
    """The marks as a list."""
    items = ""
    for mark in marks:
        warning = "<strong>Warning</strong> " if mark.warning else ""
        message = f": {quoted(mark.message)}" if mark.message else ""
        text = f"<code>{quoted(mark.about)}</code> {warning}<b>{quoted(mark.reason)}</b>{message}"
        items += f"<li><time>{mark.at:%H:%M:%S}</time><span>{text}</span></li>\n"
    return f'<ul class="marks">\n{items}</ul>\n'


def _figure(
    frame: model.Timeline, steps: Sequence[ChartStep], rows: Sequence[str], label: str
) -> str:
    shown = [step for step in steps if frame.begin <= step.at <= frame.end]
    above = f'<div class="steps">{_labels(shown, frame)}</div>' if shown else ""
    numbers = f'<div class="row"><div class="name quiet">step</div>{above}</div>\n' if above else ""
    took = duration(frame.seconds)
    axis = (
        f'<div class="row"><div class="name"></div><div class="axis">'
        f"<span>{frame.begin:%H:%M:%S}</span>"
        f'<span class="end">{frame.end:%H:%M:%S} UTC ({took})</span></div></div>\n'
    )
    body = f"{numbers}{''.join(rows)}{axis}"
    return f'<figure role="img" aria-label="{quoted(label)}">\n{body}</figure>\n'


def _labels(steps: Sequence[ChartStep], frame: model.Timeline) -> str:
    merged: list[tuple[float, list[str]]] = []
    for step in steps:
        place = frame.place(step.at)
        if merged and place - merged[-1][0] < _APART:
            merged[-1][1].append(step.label)
        else:
            merged.append((place, [step.label]))
    return "".join(
        f'<span class="{"last" if place > _LAST else ""}" style="left:{place:.2%}">'
        f"{quoted('–'.join(dict.fromkeys((labels[0], labels[-1]))))}</span>"
        for place, labels in merged
    )


def _row(name: str, frame: model.Timeline, inside: Iterable[str], size: str = "") -> str:
    return (
        f'<div class="row"><div class="name">{quoted(name)}</div>'
        f'<div class="track{size}">{"".join(inside)}</div></div>\n'
    )


def _bar(
    span: model.TimelineSpan,
    frame: model.Timeline,
    letter: str = "",
    claim: model.Timeline | None = None,
) -> str:
    left = frame.place(span.start)
    width = frame.place(span.end or frame.end) - left
    classes = f"span {span.lane}"
    classes += f" {span.state.lower()}" if span.state in (model.WAITING, model.UNKNOWN) else ""
    classes += " before" if span.started_before else ""
    classes += " lettered" if letter else ""
    inside = f'<span class="letter">{quoted(letter)}</span>' if letter else ""
    of = f"{claim.namespace}/{claim.claim} " if claim else ""
    until = f"to {span.end:%H:%M:%S}" if span.end else "and goes on"
    title = quoted(f"{of}{span.name} {span.state} from {span.start:%H:%M:%S} {until}")
    return (
        f'<div class="{classes}" style="left:{left:.2%};width:{width:.2%}" title="{title}">'
        f"{inside}</div>"
    )


def _curve(timeline: model.Timeline) -> str:
    """The number of pods."""
    running = model.levels(timeline.of(model.Lane.POD, model.RUNNING))
    everything = model.levels(timeline.of(model.Lane.POD))
    top = max(model.most(everything), 1)
    curve = (
        '<svg viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="area" d="{_path(running, timeline, top)}"/>'
        f'<path class="outline" d="{_path(everything, timeline, top)}"/></svg>'
    )
    name = f"pods: up to {model.most(running)} run; dashed: with those that wait, up to {top}"
    return _row(name, timeline, [curve], " high")


def _path(steps: Sequence[model.CountAt], frame: model.Timeline, top: int) -> str:
    """A curve of steps in a field of 1000 by 100; it begins and ends at the bottom."""
    points, height = ["M0 100"], 100.0
    for step in steps:
        x, before = frame.place(step.at) * 1000, height
        height = 100 - 98 * step.count / top
        points += [f"L{x:.1f} {before:.1f}", f"L{x:.1f} {height:.1f}"]
    return " ".join([*points, f"L1000 {height:.1f}", "L1000 100 Z"])
