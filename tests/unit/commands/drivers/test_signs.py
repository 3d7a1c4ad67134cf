"""How far a pod has come, by its status and the Events about it."""

from __future__ import annotations

import pytest

from claimctl.commands.drivers.signs import StepOutcome, is_away, sign_of
from claimctl.commands.drivers.signs import StepResult as Result
from claimctl.wire.coordination import Event, ObjectReference
from claimctl.wire.meta import Condition, ObjectMeta
from claimctl.wire.pods import Pod, PodSpec, PodStatus

META = ObjectMeta(namespace="team", name="p", uid="u")
WAITS = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")


def pod(phase: str = "Pending", node: str = "node-1", *conditions: Condition) -> Pod:
    status = PodStatus(phase=phase, conditions=conditions)
    return Pod(metadata=META, spec=PodSpec(node_name=node), status=status)


def event(reason: str, note: str, uid: str = "u") -> Event:
    about = ObjectReference(namespace="team", name="p", uid=uid)
    return Event(metadata=ObjectMeta(namespace="team"), reason=reason, note=note, regarding=about)


PREPARE = "Failed to prepare dynamic resources: prepare dynamic resources: "
REFUSED = f"{PREPARE}NodePrepareResources failed for ResourceClaim c: no power"
NOT_YET = "fetch ResourceClaim c: forbidden: no relationship found between node and this object"
"""What a kubelet says that looks for a claim before the API server knows that it may."""
SECOND = 'Error: failed to create containerd container: claimUID "c" already bound to pod "p"'


@pytest.mark.parametrize(
    ("seen", "events", "sign"),
    [
        (pod(), [], StepOutcome(Result.TIMED_OUT)),
        (pod("Running"), [], StepOutcome(Result.DONE)),
        (pod("Running"), [event("Failed", SECOND)], StepOutcome(Result.DONE)),
        (pod("Failed"), [], StepOutcome(Result.ENDED, "the pod has ended by itself (Failed)")),
        (
            pod("Succeeded"),
            [],
            StepOutcome(Result.ENDED, "the pod has ended by itself (Succeeded)"),
        ),
        (
            pod(),
            [event("FailedPrepareDynamicResources", REFUSED)],
            StepOutcome(Result.PREPARE_REFUSED, "no power"),
        ),
        (
            pod(),
            [event("FailedPrepareDynamicResources", f"{PREPARE}DRA driver d is not registered")],
            StepOutcome(Result.PREPARE_REFUSED, "DRA driver d is not registered"),
        ),
        (
            pod(),
            [event("FailedPrepareDynamicResources", f"{PREPARE}{NOT_YET}")],
            StepOutcome(Result.TIMED_OUT, NOT_YET),
        ),
        (
            pod(),
            [
                event("FailedPrepareDynamicResources", REFUSED),
                event("FailedPrepareDynamicResources", f"{PREPARE}{NOT_YET}"),
            ],
            StepOutcome(Result.PREPARE_REFUSED, "no power"),
        ),
        (pod(), [event("Failed", SECOND)], StepOutcome(Result.CONTAINER_REFUSED, SECOND)),
        (
            pod(),
            [event("FailedCreatePodSandBox", "no network")],
            StepOutcome(Result.CONTAINER_REFUSED, "no network"),
        ),
        (
            pod(),
            [event("Failed", 'Failed to pull image "x": not found')],
            StepOutcome(Result.NO_IMAGE, 'Failed to pull image "x": not found'),
        ),
        (
            pod(),
            [event("Failed", "Error: ErrImagePull")],
            StepOutcome(Result.NO_IMAGE, "Error: ErrImagePull"),
        ),
        (
            pod(),
            [event("FailedPrepareDynamicResources", REFUSED, "other")],
            StepOutcome(Result.TIMED_OUT),
        ),
        (pod(), [event("Scheduled", "assigned")], StepOutcome(Result.TIMED_OUT)),
        (pod("Pending", "", WAITS), [], StepOutcome(Result.NOT_SCHEDULED, "no room")),
    ],
)
def test_what_a_pod_shows(seen: Pod, events: list[Event], sign: StepOutcome) -> None:
    assert sign_of(seen, events) == sign


def test_the_last_refusal_counts() -> None:
    first = event("FailedPrepareDynamicResources", REFUSED)
    assert sign_of(pod(), [first, event("Failed", SECOND)]).result is Result.CONTAINER_REFUSED


@pytest.mark.parametrize(
    ("message", "away"),
    [
        ("DRA driver gpu.example.com is not registered", True),
        ("plugin name gpu.example.com not found in the list of registered DRA plugins", True),
        ("the device does not answer", False),
    ],
)
def test_a_kubelet_says_that_a_driver_is_away(message: str, *, away: bool) -> None:
    assert is_away(message) is away
