"""How far a pod has come, by its status and the Events about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from claimctl.wire.coordination import Event
from claimctl.wire.meta import find_condition
from claimctl.wire.pods import Pod


class Result(StrEnum):
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


REFUSALS = (Result.PREPARE_REFUSED, Result.CONTAINER_REFUSED)

_BY_REASON = {
    "FailedPrepareDynamicResources": Result.PREPARE_REFUSED,
    "FailedCreatePodSandBox": Result.CONTAINER_REFUSED,
    "Failed": Result.CONTAINER_REFUSED,
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
class Sign:
    """How far a pod has come, and the words of who refuses it."""

    result: Result
    message: str = ""


def sign_of(pod: Pod, events: Iterable[Event]) -> Sign:
    """How far the pod has come. Without a refusal it is DONE or TIMED_OUT: it runs, or it waits."""
    if pod.status.phase == "Running":
        return Sign(Result.DONE)
    if pod.status.phase in ("Succeeded", "Failed"):
        return Sign(Result.ENDED, f"the pod has ended by itself ({pod.status.phase})")
    found = [sign for event in events for sign in _signs(event, pod)]
    if found:
        return found[-1]
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if condition is not None and condition.reason == "Unschedulable":
        return Sign(Result.NOT_SCHEDULED, condition.message)
    return Sign(Result.TIMED_OUT)


def _signs(event: Event, pod: Pod) -> Iterable[Sign]:
    result = _BY_REASON.get(event.reason)
    if result is None or not event.is_about(pod.metadata):
        return
    if event.reason == "Failed" and _IMAGE.search(event.note):
        result = Result.NO_IMAGE
    yield Sign(result, _LONG_WAYS.sub("", " ".join(event.note.split())))


def is_away(message: str) -> bool:
    """Whether a kubelet says that it does not know the driver."""
    return any(words in message for words in _NOT_THERE)
