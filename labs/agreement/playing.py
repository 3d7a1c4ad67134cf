"""Plays one seed, asks the commands and the metrics, and judges what they say."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

from kube_in_process.virtual import run

from labs.agreement.answers import Answers, Gauges, ask
from labs.agreement.states import in_order, tortured, with_a_good_controller
from labs.agreement.verdict import of_metrics, verdict
from labs.findings import RunFindings
from labs.torture.reference import LIMIT
from labs.torture.testbed import Testbed

LATE, LOOKS = 5.0, 4
"""Seconds by which a gauge may be late, and how often they are waited for."""


@dataclass
class AgreementTally:
    """What was seen of some seeds."""

    counts: Counter[str] = field(default_factory=Counter)
    bad: list[RunFindings] = field(default_factory=list)

    def add(self, other: AgreementTally) -> None:
        self.counts += other.counts
        self.bad += other.bad

    async def look(self, what: str, testbed: Testbed, gauges: Gauges | None = None) -> None:
        """Judge what is said of the present state.

        Args:
            what: the kind of the state, and its seed.
            gauges: of the controller without faults, if one runs.
        """
        kind = what.partition(" SEED=")[0]
        self.counts[f"{kind}: states"] += 1
        answers = await _settled(testbed, gauges)
        if answers is None:
            self.counts[f"{kind}: never still"] += 1
            return
        self.counts[f"{kind}: with pods that wait"] += bool(answers.objects.waiting())
        self.counts[f"{kind}: in good order"] += not answers.objects.ailments()
        if found := verdict(answers):
            self.bad.append(RunFindings(what, violations=found))


async def _settled(testbed: Testbed, gauges: Gauges | None) -> Answers | None:
    """The answers; if the metrics differ from the commands, those of a little later."""
    answers = await ask(testbed, gauges)
    for _ in range(LOOKS):
        if answers is None or not list(of_metrics(answers)):
            break
        await testbed.sleep(LATE)
        answers = await ask(testbed, gauges)
    return answers


async def _of_torture(seed: int, seen: AgreementTally) -> None:
    """Look at a state of torture, and again when one controller without faults has settled."""
    async with tortured(seed) as testbed:
        await seen.look(f"torture SEED={seed}", testbed)
        gauges = await with_a_good_controller(testbed)
        await seen.look(f"with a good controller SEED={seed}", testbed, gauges)


async def _of_good_order(seed: int, seen: AgreementTally) -> None:
    async with in_order(seed) as (testbed, gauges):
        await seen.look(f"good users SEED={seed}", testbed, gauges)


Play = Callable[[int, AgreementTally], Coroutine[Any, Any, None]]
PLAYS: dict[str, Play] = {"torture": _of_torture, "good order": _of_good_order}


def play(name: str, seeds: Iterable[int]) -> AgreementTally:
    """Play some seeds of one kind."""
    seen = AgreementTally()
    for seed in seeds:
        run(PLAYS[name](seed, seen), limit=LIMIT)
    gc.collect()
    return seen
