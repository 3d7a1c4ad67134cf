"""Plays one seed, asks the commands and the metrics, and judges what they say."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from labs.agreement.answers import Answers, Gauges, ask
from labs.agreement.states import in_order, tortured, with_a_good_controller
from labs.agreement.verdict import of_metrics, verdict
from labs.findings import RunFindings
from labs.runs import to_its_end
from labs.torture.reference import LIMIT
from labs.torture.testbed import Testbed

LATE, LOOKS = 5.0, 4
"""Seconds by which a gauge may be late, and how often they are waited for."""


def play(name: str, seed: int) -> RunFindings:
    """Play a seed of one kind (see ``PLAYS``)."""
    found = RunFindings(f"{name} SEED={seed}")
    to_its_end(PLAYS[name](seed, found), found, LIMIT)
    return found


async def _of_torture(seed: int, found: RunFindings) -> None:
    """Look at a state of torture, and again when one controller without faults has settled."""
    async with tortured(seed) as testbed:
        await _look(found, "torture", testbed)
        gauges = await with_a_good_controller(testbed)
        await _look(found, "with a good controller", testbed, gauges)


async def _of_good_order(seed: int, found: RunFindings) -> None:
    async with in_order(seed) as (testbed, gauges):
        await _look(found, "good users", testbed, gauges)


Play = Callable[[int, RunFindings], Coroutine[Any, Any, None]]
PLAYS: dict[str, Play] = {"torture": _of_torture, "good order": _of_good_order}


async def _look(
    found: RunFindings, kind: str, testbed: Testbed, gauges: Gauges | None = None
) -> None:
    """Judge what is said of the present state.

    Args:
        kind: of the state.
        gauges: of the controller without faults, if one runs.
    """
    found.counts[f"{kind}: states"] += 1
    answers = await _settled(testbed, gauges)
    if answers is None:
        found.counts[f"{kind}: never still"] += 1
        return
    found.counts[f"{kind}: with pods that wait"] += bool(answers.objects.waiting())
    found.counts[f"{kind}: in good order"] += not answers.objects.ailments()
    found.violations += [f"{kind}: {text}" for text in verdict(answers)]


async def _settled(testbed: Testbed, gauges: Gauges | None) -> Answers | None:
    """The answers; if the metrics differ from the commands, those of a little later."""
    answers = await ask(testbed, gauges)
    for _ in range(LOOKS):
        if answers is None or not list(of_metrics(answers)):
            break
        await testbed.sleep(LATE)
        answers = await ask(testbed, gauges)
    return answers
