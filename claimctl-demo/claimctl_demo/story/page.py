"""The page of ``claimctl demo --html``: what happened, step by step and claim by claim."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape
from string import ascii_uppercase

from msgspec.structs import replace

from claimctl.commands.timeline import html
from claimctl.commands.timeline.model import Lane, Timeline
from claimctl_demo.story.parts import Part
from claimctl_demo.story.report import Report, Step, figures_of

_INTRODUCTION = (
    "A user makes Deployments and Jobs that share devices through claims. claimctl runs as the "
    "real controller and keeps each claim reserved until its workload has ended. The charts are "
    "made from every change that the API server stored."
)
_ROOM = 1.03
"""A chart ends this much later than the last change of its claim."""

Letters = dict[tuple[str, str], str]


def page(report: Report) -> str:
    """The whole page. It loads nothing from elsewhere."""
    parts = [
        f"<p>{escape(_INTRODUCTION)}</p>\n",
        f'<p class="result">{escape(report.conclusion())}</p>\n',
        f'<p class="quiet">Played on {escape(report.played_on)}. '
        f"{escape(html.KEY)} Times are in UTC.</p>\n",
        *(_broken(report)),
        *(_part(report, part) for part in report.parts),
    ]
    return html.page("claimctl demo: who held which device when", "".join(parts))


def _broken(report: Report) -> list[str]:
    found = [f"{each.rule}: {each.message}" for each in report.violations]
    found += [f"Error in the cluster: {each}" for each in report.errors]
    if not found:
        return []
    items = "".join(f'<li class="bad">{escape(each)}</li>\n' for each in found)
    return [f"<h2>What went wrong</h2>\n<ul>\n{items}</ul>\n"]


def _part(report: Report, part: Part) -> str:
    steps = [step for step in report.steps if step.part == part]
    ticks = [
        html.ChartStep(step.began, str(number))
        for number, step in enumerate(steps, start=1)
        if step.began is not None
    ]
    return (
        f"<h2>{escape(part.heading)}</h2>\n"
        f"<h3>Steps</h3>\n<ol>\n{''.join(map(_step, steps))}</ol>\n"
        f"{_claims(report.timelines.get(part, ()), ticks)}"
    )


def _claims(timelines: Sequence[Timeline], ticks: Sequence[html.ChartStep]) -> str:
    """The chart of the devices, then one chart for each claim, the first that was made first."""
    if not timelines:
        return "<p>There were no claims.</p>\n"
    found = sorted(map(_cut, timelines), key=lambda each: each.begin)
    letters = _letters(found)
    claims = "".join(_claim(each, letters, ticks) for each in found)
    chart = html.devices(found, letters, ticks)
    return f"<h3>Devices, with the claims that had them</h3>\n{chart}{_legend(letters)}{claims}"


def _step(step: Step) -> str:
    verdict = "ok" if step.ok else '<span class="bad">FAILED</span>'
    figures = figures_of(step)
    more = f' <span class="quiet">{escape(figures)}</span>' if figures else ""
    return (
        f"<li><b>{escape(step.name)}</b> ({verdict}, {step.seconds:.1f} s): "
        f"{escape(step.message)}{more}</li>\n"
    )


def _letters(found: Sequence[Timeline]) -> Letters:
    """A letter for each claim; numbers after Z."""
    return {
        (each.namespace, each.claim): ascii_uppercase[place] if place < 26 else str(place + 1)
        for place, each in enumerate(found)
    }


def _legend(letters: Letters) -> str:
    items = ", ".join(
        f"<b>{letter}</b> {escape(f'{space}/{name}')}" for (space, name), letter in letters.items()
    )
    return f"<p>{items}</p>\n"


def _claim(timeline: Timeline, letters: Letters, ticks: Sequence[html.ChartStep]) -> str:
    letter = letters[timeline.namespace, timeline.claim]
    name = escape(f"{timeline.namespace}/{timeline.claim}")
    return (
        f"<h3>{letter}: claim {name}</h3>\n<p>{escape(_life(timeline))}</p>\n"
        f"{html.chart(timeline, ticks)}"
        f"<details><summary>{len(timeline.marks)} events</summary>\n"
        f"{html.marks(timeline.marks)}</details>\n"
    )


def _life(timeline: Timeline) -> str:
    """When the claim got its devices and lost them, in one sentence each."""
    told = [
        f"{each.at:%H:%M:%S} {each.message}."
        for each in timeline.marks
        if each.reason in {"Allocated", "Deallocated"}
    ]
    return " ".join(told) or "It never got a device."


def _cut(timeline: Timeline) -> Timeline:
    """The timeline up to a moment after its last change, if nothing lasts then."""
    if any(each.end is None and each.lane is not Lane.POD for each in timeline.spans):
        return timeline
    last: datetime = max(
        (
            *(each.end or each.start for each in timeline.spans),
            *(each.at for each in timeline.marks),
            timeline.begin,
        )
    )
    end = timeline.begin + timedelta(seconds=(last - timeline.begin).total_seconds() * _ROOM)
    return replace(timeline, end=min(end, timeline.end))
