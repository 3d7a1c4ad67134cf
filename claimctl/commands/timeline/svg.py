"""A timeline as one SVG picture, light or dark as the reader's device is.

Devices are solid, holders are hatched, and the number of pods is a curve. So nothing depends on
colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from claimctl.commands.timeline import model
from claimctl.commands.timeline.html import KEY, describe, quoted, style_of
from claimctl.text import duration

WIDTH = 860
_ROW, _HIGH, _EDGE = 28, 56, 16
_CHARACTER = 7.9
"""The width of a character in pixels."""
_KINDS = {model.WAITING: "waiting", model.UNKNOWN: "unknown"}


@dataclass(slots=True)
class _Drawing:
    timeline: model.Timeline
    left: float
    """Where the bars begin."""
    top: float = 52.0
    """Where the next row begins."""
    parts: list[str] = field(default_factory=list)

    def x(self, place: float) -> float:
        return self.left + place * (WIDTH - _EDGE - self.left)

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
            f"{quoted(text)}</text>"
        )

    def row(self, name: str, height: float = _ROW) -> float:
        """Begin a row; returns its top."""
        top, self.top = self.top, self.top + height
        self.text(self.left - 10, top + height / 2 + 4, name, anchor="end")
        self.parts.append(
            f'<line class="line" x1="{self.left:.1f}" x2="{WIDTH - _EDGE}" '
            f'y1="{self.top - 2:.1f}" y2="{self.top - 2:.1f}"/>'
        )
        return top

    def bars(self, name: str, spans: Iterable[model.TimelineSpan]) -> None:
        top = self.row(name)
        for span in spans:
            begin = self.x(self.timeline.place(span.start))
            end = self.x(self.timeline.place(span.end or self.timeline.end))
            kind = _KINDS.get(span.state, str(span.lane))
            inset = 9 if span.lane is model.Lane.POD else 5
            self.parts.append(
                f'<rect class="{kind}" x="{begin:.1f}" y="{top + inset:.1f}" '
                f'width="{max(end - begin, 2):.1f}" height="{_ROW - 2 * inset}"/>'
            )

    def curve(self, steps: Sequence[model.CountAt], top: float, most: int, kind: str) -> None:
        bottom = top + _HIGH - 2
        points, height = [f"M{self.left:.1f} {bottom:.1f}"], bottom
        for step in steps:
            x, before = self.x(self.timeline.place(step.at)), height
            height = bottom - (_HIGH - 10) * step.count / most
            points += [f"L{x:.1f} {before:.1f}", f"L{x:.1f} {height:.1f}"]
        end = self.x(1.0)
        points += [f"L{end:.1f} {height:.1f}", f"L{end:.1f} {bottom:.1f} Z"]
        self.parts.append(f'<path class="{kind}" d="{" ".join(points)}"/>')


def document(timeline: model.Timeline) -> str:
    """The picture of one claim."""
    names = [name for name, _ in timeline.bars]
    names += ["up to 9999 pods"] if timeline.many_pods else []
    longest = max(map(len, names), default=0)
    drawing = _Drawing(timeline, min(longest * _CHARACTER + _EDGE + 10, WIDTH / 2))
    drawing.text(_EDGE, 26, f"Claim {timeline.namespace}/{timeline.claim}", "head")
    for name, spans in timeline.bars:
        drawing.bars(name, spans)
    if timeline.many_pods:
        running = model.levels(timeline.of(model.Lane.POD, model.RUNNING))
        everything = model.levels(timeline.of(model.Lane.POD))
        top = drawing.row(f"up to {model.most(running)} pods", _HIGH)
        drawing.curve(running, top, max(model.most(everything), 1), "area")
        drawing.curve(everything, top, max(model.most(everything), 1), "waiting")
    y = drawing.top + 18
    drawing.text(drawing.left, y, f"{timeline.begin:%H:%M:%S}", "quiet")
    end = f"{timeline.end:%H:%M:%S} UTC ({duration(timeline.seconds)})"
    drawing.text(WIDTH - _EDGE, y, end, "quiet", "end")
    drawing.text(_EDGE, y + 26, f"{KEY} Dashed: pods that wait.", "quiet")
    height = y + 40
    title = quoted(f"Claim {timeline.namespace}/{timeline.claim}: who held it when")
    body = "\n".join(drawing.parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img">\n<title>{title}</title>\n'
        f"<desc>{quoted(describe(timeline))}</desc>\n<style>\n{style_of('picture.css')}</style>\n"
        '<defs><pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line class="hatch" x1="2" x2="2" y1="0" y2="8"/>'
        f'</pattern></defs>\n<rect class="back" width="{WIDTH}" height="{height:.0f}"/>\n'
        f"{body}\n</svg>\n"
    )
