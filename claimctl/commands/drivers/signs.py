"""How far a pod has come, by its status and the Events about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from claimctl.wire.coordination import PREPARE_FAILED, Event
from claimctl.wire.meta import find_condition
from claimctl.wire.pods import Pod


class StepResult(StrEnum):
    """What became of a step."""

    DONE = "Done"
    PREPARE_REFUSED = "PrepareRefused"
    """The driver, or the kubelet for it, did not prepare the devices."""
    CONTAINER_REFUSED = "ContainerRefused"
    """The devices are prepared, and the sandbox or a container could not be made."""
    NO_IMAGE = "NoImage"
    """The image could not be pulled."""
    NOT_SCHEDULED = "NotScheduled"
    ENDED = "Ended"
    """The pod ended by itself, before it was seen to run."""
    TIMED_OUT = "TimedOut"
    NOT_TRIED = "NotTried"


REFUSALS = (StepResult.PREPARE_REFUSED, StepResult.CONTAINER_REFUSED)

_BY_REASON = {
    PREPARE_FAILED: StepResult.PREPARE_REFUSED,
    "FailedCreatePodSandBox": StepResult.CONTAINER_REFUSED,
    "Failed": StepResult.CONTAINER_REFUSED,
}
"""The reasons of a kubelet's Events. It says Failed of images, too."""
_IMAGE = re.compile(r"\b(pull|ErrImage\w*|ImagePull\w*|InvalidImageName)\b")
_LONG_WAYS = re.compile(
    r"^(Failed to prepare dynamic resources: )?(prepare dynamic resources: )?"
    r"(NodePrepareResources failed for ResourceClaim \S+: )?"
)


_NOT_THERE = ("is not registered", "in the list of registered DRA plugins")
"""How kubelets, from 1.34 on and before, say that a driver is away."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What became of a step.

    Attributes:
        message: who refused it, and why; of a step that is done, what was refused at first.
        seconds: how long the driver needed; None if the step was not done.
    """

    result: StepResult = StepResult.NOT_TRIED
    message: str = ""
    seconds: float | None = None


def sign_of(pod: Pod, events: Iterable[Event]) -> StepOutcome:
    """How far the pod has come. Without a refusal it is DONE or TIMED_OUT: it runs, or it waits."""
    if pod.status.phase == "Running":
        return StepOutcome(StepResult.DONE)
    if pod.status.phase in ("Succeeded", "Failed"):
        return StepOutcome(StepResult.ENDED, f"the pod has ended by itself ({pod.status.phase})")
    signs = [sign for event in events for sign in _signs(event, pod)]
    if signs:
        refusals = [sign for sign in signs if sign.result is not StepResult.TIMED_OUT]
        return (refusals or signs)[-1]
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if condition is not None and condition.reason == "Unschedulable":
        return StepOutcome(StepResult.NOT_SCHEDULED, condition.message)
    return StepOutcome(StepResult.TIMED_OUT)


def _signs(event: Event, pod: Pod) -> Iterable[StepOutcome]:
    result = _BY_REASON.get(event.reason)
    if result is None or not event.is_about(pod.metadata):
        return
    message = _LONG_WAYS.sub("", " ".join(event.note.split()))
    if event.reason == "Failed" and _IMAGE.search(event.note):
        result = StepResult.NO_IMAGE
    elif result is StepResult.PREPARE_REFUSED and not _is_of_driver(event.note):
        # the kubelet itself could not do it yet, such as read the claim; it tries again
        result = StepResult.TIMED_OUT
    yield StepOutcome(result, message)


def _is_of_driver(note: str) -> bool:
    return "NodePrepareResources" in note or is_away(note)


def is_away(message: str) -> bool:
    """Whether a kubelet says that it does not know the driver."""
    return any(words in message for words in _NOT_THERE)
