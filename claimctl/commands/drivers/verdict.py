"""Which observation means which habit: pure functions of what was seen on one node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from claimctl.commands.drivers.signs import REFUSALS, StepOutcome, StepResult, is_away
from claimctl.reservation.kinds.drivers import (
    HIDES_USED_DEVICES,
    WANTS_ONE_POD,
    known_drivers,
    known_habits,
)
from claimctl.text import duration

SLOW_SECONDS = 10.0
"""After so long beside a hold, a controller takes a driver for one that refuses it."""


class CheckStep(StrEnum):
    """What is tried, in this order. The value is for people."""

    PREPARE = "prepare"
    UNPREPARE = "unprepare"
    AGAIN = "prepare again"
    HOLD_FIRST = "behind a hold"
    HOLD_LAST = "before a hold"
    TWO_PODS = "two pods"


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """What was seen on one node.

    Attributes:
        kubelet: its version; '' if the user may not read nodes.
        device: pool/name of the device of the claim; '' if it got none.
        hidden: whether the device was not published while a pod used it.
        effects: those of the taints that the driver had published.
        skipped: why nothing was tried; '' if something was.
    """

    node: str
    kubelet: str = ""
    device: str = ""
    hidden: bool = False
    effects: frozenset[str] = frozenset()
    steps: Mapping[CheckStep, StepOutcome] = field(default_factory=dict)
    skipped: str = ""

    def result(self, step: CheckStep) -> StepResult:
        return self.outcome(step).result

    def outcome(self, step: CheckStep) -> StepOutcome:
        return self.steps.get(step, StepOutcome())

    @property
    def complete(self) -> bool:
        """Whether every step led to a statement about the driver."""
        answers = (StepResult.DONE, *REFUSALS)
        behind = self.result(CheckStep.HOLD_FIRST) is StepResult.DONE
        wanted = [step for step in CheckStep if not (step is CheckStep.HOLD_LAST and behind)]
        return all(self.result(step) in answers for step in wanted)


def habits_of(seen: NodeSeen) -> tuple[str, ...]:
    """The habits that the driver has shown on the node, in the order of the data."""
    shown = {*_of_prepares(seen), *_of_lists(seen), *_of_slices(seen)}
    return tuple(name for name in known_habits() if name in shown)


def _of_prepares(seen: NodeSeen) -> Iterator[str]:
    tried = [seen.outcome(step) for step in (CheckStep.PREPARE, CheckStep.AGAIN)]
    for outcome in tried:
        if outcome.result is StepResult.PREPARE_REFUSED:
            yield "away" if is_away(outcome.message) else "fails-to-prepare"
    prepared = [it.seconds for it in tried if it.seconds is not None]
    # the first one may have waited for something else
    if prepared and min(prepared) > SLOW_SECONDS:
        yield "slow"
    unprepared = seen.outcome(CheckStep.UNPREPARE)
    if unprepared.result is StepResult.TIMED_OUT and prepared:
        yield "fails-to-unprepare"
    elif (unprepared.seconds or 0) > SLOW_SECONDS:
        yield "slow"


def _of_lists(seen: NodeSeen) -> Iterator[str]:
    """What a driver wants of the list. It prepared the claim for one pod alone before."""
    if seen.result(CheckStep.AGAIN) is not StepResult.DONE:
        return
    first, last = seen.result(CheckStep.HOLD_FIRST), seen.result(CheckStep.HOLD_LAST)
    one_pod = first in REFUSALS and last in REFUSALS
    if one_pod:
        yield WANTS_ONE_POD
    elif first in REFUSALS and last is StepResult.DONE:
        yield "reads-the-first-reference"
    if seen.result(CheckStep.TWO_PODS) in REFUSALS and not one_pod:
        yield "refuses-a-second-pod"


def _of_slices(seen: NodeSeen) -> Iterator[str]:
    if seen.hidden:
        yield HIDES_USED_DEVICES
    if "NoSchedule" in seen.effects:
        yield "taints-no-schedule"
    if "NoExecute" in seen.effects:
        yield "taints-no-execute"


def not_tried() -> dict[str, str]:
    """The habits that no check can see, each with what would show it."""
    return {name: habit.needs for name, habit in known_habits().items() if habit.needs}


def seen_in_words(seen: NodeSeen) -> str:
    """What was seen, in one line."""
    if seen.skipped:
        return f"nothing tried: {seen.skipped}"
    parts = [_step_in_words(step, seen.outcome(step)) for step in CheckStep]
    if seen.hidden:
        parts.append("the device was not published while a pod used it")
    parts += [f"a device has a taint {effect}" for effect in sorted(seen.effects)]
    return "; ".join(filter(None, parts))


_SAID = {
    StepResult.PREPARE_REFUSED: "refused",
    StepResult.CONTAINER_REFUSED: "no container",
    StepResult.NO_IMAGE: "no image",
    StepResult.NOT_SCHEDULED: "not scheduled",
    StepResult.ENDED: "ended",
    StepResult.TIMED_OUT: "no answer in time",
}


def _step_in_words(step: CheckStep, outcome: StepOutcome) -> str:
    if outcome.result is StepResult.NOT_TRIED:
        return ""
    if outcome.result is not StepResult.DONE:
        return f"{step}: {_SAID[outcome.result]}" + f" ({outcome.message})" * bool(outcome.message)
    seconds = outcome.seconds or 0.0
    took = f" in {duration(seconds)}" if seconds >= 1 else ""
    first = f", refused at first ({outcome.message})" if outcome.message else ""
    return f"{step}: done{took}{first}"


def answer_of(seen: NodeSeen, driver: str) -> str:
    """What claimctl does about it, and what is to be done, in one line."""
    if seen.skipped:
        return "-"
    habits = [known_habits()[name] for name in habits_of(seen)]
    does = [it.claimctl for it in habits]
    if not does:
        does = ["holds the claim" if seen.complete else "not known: the check was not finished"]
    return "; ".join(dict.fromkeys([*does, *tasks_of(seen, driver)]))


def tasks_of(seen: NodeSeen, driver: str) -> tuple[str, ...]:
    """What the user should do."""
    known = known_drivers().get(driver)
    tasks = []
    for name in habits_of(seen):
        habit = known_habits()[name]
        tasks.append(habit.always)
        if known is None or name not in known.habits:
            tasks.append(habit.unless_known.replace("{driver}", driver))
    return tuple(filter(None, tasks))
