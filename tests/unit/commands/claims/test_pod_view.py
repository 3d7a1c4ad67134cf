"""Why a pod waits, from its claims and its conditions."""

from __future__ import annotations

import pytest

from claimctl.commands.claims.pod_advice import pod_advice
from claimctl.commands.claims.pod_explanation import explain_pod
from tests.support.claim_server import NAMESPACE, Server
from tests.support.explained import pod_lines
from tests.support.waiting import asks, has_devices, publish


async def test_each_cause_has_its_reason() -> None:
    server = Server.started()
    server.pod("without", claim="nosuch", node="")
    server.claim("slice", server.deployment())
    server.pod("quiet", node="")
    full = [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(256)]
    has_devices(server, "full", *full)
    publish(server, "full")
    server.pod("many", claim="full", node="")
    asks(server, "bare")
    server.pod("stranded", claim="bare")
    server.admin.patch("pods", NAMESPACE, "stranded", {"status": {"phase": "Pending"}}, "status")
    told = {}
    for name in ("without", "quiet", "many", "stranded"):
        found = await explain_pod(server.client, NAMESPACE, name, server.clock)
        told[name] = [reason for reason, _ in found.reasons()]
    assert told == {
        "without": ["ClaimNotFound"],
        "quiet": ["NotScheduledYet"],
        "many": ["ReservedForFull", "NotScheduledYet"],
        "stranded": ["StrandedPod", "Starting"],
    }


async def test_a_kubelet_that_reports_nothing_is_to_be_looked_at() -> None:
    server = Server.started()
    server.claim("slice", server.pod("a"))
    server.admin.patch("pods", NAMESPACE, "a", {"status": {"phase": "Pending"}}, "status")
    found = await explain_pod(server.client, NAMESPACE, "a", server.clock)
    text = "the kubelet of n1 has not reported anything about the pod"
    assert found.reasons() == (("Starting", text),)
    assert pod_advice(found)[-1].endswith("see whether its kubelet works: kubectl describe node n1")
    status = [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    patch = {"status": {"containerStatuses": status}}
    server.admin.patch("pods", NAMESPACE, "a", patch, "status")
    found = await explain_pod(server.client, NAMESPACE, "a", server.clock)
    assert found.reasons() == (("Starting", "the kubelet of n1 starts the pod"),)
    assert pod_advice(found) == ("Wait a moment, and look again.",)


@pytest.mark.parametrize("status", ["", "False", "True"])
async def test_a_pod_that_waits_for_the_driver_of_a_claim_is_told_so(status: str) -> None:
    server = Server.started()
    ready, failed = "example.com/ready", "example.com/failed"
    has_devices(server, "slice", bindingConditions=[ready], bindingFailureConditions=[failed])
    condition = {"type": ready, "status": status, "reason": "Driver", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    of_device = {"driver": "d.example.com", "pool": "n1", "device": "slice"}
    reported = {"devices": [{**of_device, "conditions": [condition]}] if status else []}
    server.admin.patch("resourceclaims", NAMESPACE, "slice", {"status": reported}, "status")
    publish(server, "slice")
    server.pod("late", node="")
    found = await explain_pod(server.client, NAMESPACE, "late", server.clock)
    ((reason, text),) = found.reasons()
    if status == "True":
        assert reason == "NotScheduledYet"
        return
    assert reason == "BindingConditionsMissing"
    said = "does not report as true" if status else "has reported nothing about"
    assert text.startswith("claim slice: n1/slice: a scheduler binds no pod before these")
    assert f"driver d.example.com {said} example.com/ready" in text
    assert pod_advice(found) == (
        "Look at the log of the driver, or of its controller: it has to report them.",
    )


async def test_a_running_pod_needs_nothing() -> None:
    server = Server.started()
    server.claim("slice", server.pod("user"))
    found = await explain_pod(server.client, NAMESPACE, "user", server.clock)
    assert (found.state, found.reasons(), found.rivals) == ("Running", (), ())
    assert pod_lines(found)[-2:] == ["What to do:", "  Nothing is wrong."]


@pytest.mark.parametrize(
    ("reason", "advice"),
    [("Deferred", "claimctl reschedule --policy-config-file"), ("Infeasible", "a size that the")],
)
async def test_a_resize_that_waits_has_its_reason(reason: str, advice: str) -> None:
    server = Server.started()
    server.pod("grows")
    condition = {"type": "PodResizePending", "status": "True", "reason": reason, "message": "why"}
    status = {"phase": "Running", "conditions": [condition]}
    server.admin.patch("pods", NAMESPACE, "grows", {"status": status}, "status")
    found = await explain_pod(server.client, NAMESPACE, "grows", server.clock)
    assert found.reasons() == ((f"Resize{reason}", "why"),)
    assert advice in pod_advice(found)[0]
    assert f"  Resize{reason}: why" in pod_lines(found)


async def test_a_gated_pod_waits_for_its_gates_alone() -> None:
    server = Server.started()
    body = {
        "metadata": {"name": "gated", "namespace": NAMESPACE},
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "schedulingGates": [{"name": "example.com/quota"}],
        },
    }
    server.admin.create("pods", body)
    found = await explain_pod(server.client, NAMESPACE, "gated", server.clock)
    assert found.reasons() == (
        ("SchedulingGated", "1 scheduling gate keeps schedulers from the pod"),
    )


async def test_a_pod_that_a_node_refused_or_that_waits_for_the_brake_says_so() -> None:
    server = Server.started()
    for name in ("refused", "braked", "avoiding"):
        server.pod(name, node="node-0" if name == "refused" else "")
    text = "Pod was rejected: Resources cannot be allocated with Topology locality"
    status = {"phase": "Failed", "reason": "TopologyAffinityError", "message": text}
    server.admin.patch("pods", NAMESPACE, "refused", {"status": status}, "status")
    gate = {"spec": {"schedulingGates": [{"name": "claimctl.io/brake"}]}}
    made = server.admin.get("pods", NAMESPACE, "braked")
    server.admin.delete("pods", NAMESPACE, "braked")
    fresh = {key: made["metadata"][key] for key in ("name", "namespace")}
    server.admin.create("pods", {"metadata": fresh, "spec": {**made["spec"], **gate["spec"]}})
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    server.admin.patch(
        "pods", NAMESPACE, "avoiding", {"status": {"conditions": [scheduled]}}, "status"
    )
    annotations = {"metadata": {"annotations": {"claimctl.io/avoids": "node-1"}}}
    server.admin.patch("pods", NAMESPACE, "avoiding", annotations)
    told = {}
    for name in ("refused", "braked", "avoiding"):
        found = await explain_pod(server.client, NAMESPACE, name, server.clock)
        told[name] = found.reasons()[-1]
    assert told["refused"] == ("TopologyAffinityError", f"node-0: {text}")
    assert told["braked"][0] == "Braked"
    assert told["avoiding"] == ("Avoids", "nodes that refused pods of its owner: node-1")
