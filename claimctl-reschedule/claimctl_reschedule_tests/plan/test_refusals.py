"""Which pods a node refused, and which ones are stuck."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from claimctl.wire.traces import BRAKE_GATE
from claimctl_reschedule.plan.refusals import Refusal, is_braked, refusal, why_stuck
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.scheduling import NOW, pod

USES = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
FAILED_TO = "Failed to prepare dynamic resources: the driver is away"


def failed(reason: str = "", message: str = "", on: str = "node-0", **status: Any) -> SchedulingPod:
    status |= {"reason": reason, "message": message}
    return pod("web", on, phase="Failed", ready=False, status=status)


@pytest.mark.parametrize(
    ("reason", "message", "found"),
    [
        ("UnexpectedAdmissionError", "", Refusal.BY_NODE),
        ("TopologyAffinityError", "", Refusal.BY_NODE),
        ("OutOfcpu", "", Refusal.BY_NODE),
        ("OutOfexample.com/gpu", "", Refusal.BY_NODE),
        ("NodeAffinity", "", Refusal.BY_NODE),
        ("NodeShutdown", "Pod was rejected: the node is shutting down", Refusal.BY_NODE),
        ("SysctlForbidden", "Pod was rejected: forbidden sysctl", Refusal.FOR_ITSELF),
        ("PodOSNotSupported", "", Refusal.FOR_ITSELF),
        ("Evicted", "The node was low on resource: memory", None),
        ("", "", None),
    ],
)
def test_the_reason_tells_whether_a_node_refused_the_pod(
    reason: str, message: str, found: Refusal | None
) -> None:
    assert refusal(failed(reason, message)) is found


def test_a_pod_that_ran_or_runs_or_has_no_node_was_not_refused() -> None:
    ended = {"name": "c", "state": {"terminated": {}}}
    assert refusal(failed("OutOfcpu", containerStatuses=[ended])) is None
    assert refusal(failed("OutOfcpu", on="")) is None
    assert refusal(pod("web", "node-0", status={"reason": "OutOfcpu"})) is None


def stuck(age: float, *, spec: dict[str, Any] | None = None, **status: Any) -> SchedulingPod:
    since = (NOW - timedelta(seconds=age)).isoformat()
    given = status.pop("conditions", [])
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": since}
    return pod(
        "web",
        "node-0",
        phase="Pending",
        spec=USES if spec is None else spec,
        status={"conditions": [bound, *given], **status},
    )


def why(one: SchedulingPod, error: str = FAILED_TO) -> str:
    reported = {one.metadata.uid: error} if error else {}
    return why_stuck(one, reported, NOW, 300.0)


def test_a_bound_pod_is_stuck_when_its_devices_were_not_prepared_in_time() -> None:
    assert why(stuck(300)) == FAILED_TO
    assert why(stuck(299)) == ""
    assert why(stuck(3000), error="") == ""
    assert why(stuck(3000, spec={})) == ""
    ready = {"type": "PodReadyToStartContainers", "status": "True"}
    assert why(stuck(3000, conditions=[ready])) == ""


@pytest.mark.parametrize("error", ["is not allocated", "is not allowed to use ResourceClaim a/b"])
def test_errors_that_the_controller_mends_are_left_to_it_for_the_same_time_again(
    error: str,
) -> None:
    assert why(stuck(599), error) == ""
    assert why(stuck(600), error) == error


def test_a_pod_whose_node_forgot_its_devices_at_a_reboot_is_stuck() -> None:
    text = "failed to create container: CDI device injection failed: unresolvable"
    waiting = {"reason": "CreateContainerError", "message": text}
    ready = {
        "type": "Ready",
        "status": "False",
        "lastTransitionTime": (NOW - timedelta(seconds=300)).isoformat(),
    }
    sandbox = {"type": "PodReadyToStartContainers", "status": "True"}
    status = {
        "conditions": [ready, sandbox],
        "containerStatuses": [{"name": "c", "state": {"waiting": waiting}}],
    }
    assert why(pod("web", "node-0", spec=USES, status=status), "") == "CDI device injection failed"
    assert why(pod("web", "node-0", status=status), "") == ""
    other = waiting | {"message": "image is broken"}
    status["containerStatuses"] = [{"name": "c", "state": {"waiting": other}}]
    assert why(pod("web", "node-0", spec=USES, status=status), "") == ""


def test_the_gate_tells_that_a_pod_is_braked() -> None:
    assert is_braked(pod("web", spec={"schedulingGates": [{"name": BRAKE_GATE}]}))
    assert not is_braked(pod("web", spec={"schedulingGates": [{"name": "example.com/other"}]}))
