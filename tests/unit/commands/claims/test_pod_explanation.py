"""Why a pod or a workload waits, who has its devices, and the command that helps."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.commands.claims.advice import SEE_WHETHER, workload_advice
from claimctl.commands.claims.pod_advice import WELL, next_steps, pod_advice
from claimctl.commands.claims.pod_document import PodExplanation, pod_of, workload_of
from claimctl.commands.claims.pod_explanation import explain_pod, explain_workload, last_seen
from claimctl.wire.coordination import Event, EventSeries
from claimctl.wire.resources import EVENTS
from tests.support.claim_server import NAMESPACE, Server
from tests.support.explained import pod_lines, workload_lines
from tests.support.printed import as_json
from tests.support.waiting import asks, has_devices, publish, unschedulable


async def test_a_waiting_pod_is_told_who_has_the_devices_and_how_to_free_them() -> None:
    server = Server.started()
    has_devices(server, "slice", server.deployment(replicas=0))
    since = {"idleSince": "2026-01-01T00:00:00Z"}
    server.reservation(status=since, retentionPolicy="Persistent")
    has_devices(server, "other", of_class="nic")
    asks(server, "mine")
    server.pod("late", claim="mine", node="")
    unschedulable(server, "late")
    found = await explain_pod(server.client, NAMESPACE, "late", server.clock)
    assert pod_lines(found) == [
        "Pod:        ml/late",
        f"State:      Waiting since {server.clock.now():%Y-%m-%dT%H:%M:%SZ}",
        "  Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.",
        "Claims:",
        "  mine: Pending, no devices, listed: nobody (0/256)",
        "Devices of the same classes are with:",
        "  claim ml/slice: n1/slice, deployments/train, idle",
        "What to do:",
        "  Free devices that are held idle: claimctl release slice -n ml",
    ]
    document = as_json(pod_of(found, PodExplanation))
    assert (document["kind"], document["state"]) == ("PodExplanation", "Waiting")
    assert [one["name"] for one in document["rivals"]] == ["slice"]


@pytest.mark.parametrize(
    ("why", "rivals"),
    [
        ("node(s) were unschedulable", []),
        ("node(s) were unschedulable, 1 cannot allocate all claims", ["slice"]),
        ("", ["slice"]),
    ],
)
async def test_other_claims_are_named_only_if_devices_may_be_what_the_pod_lacks(
    why: str, rivals: list[str]
) -> None:
    server = Server.started()
    has_devices(server, "slice", server.deployment(replicas=1))
    asks(server, "mine")
    server.pod("late", claim="mine", node="")
    if why:
        unschedulable(server, "late", why)
    found = await explain_pod(server.client, NAMESPACE, "late", server.clock)
    assert [rival.name for rival in found.rivals] == rivals


@pytest.mark.parametrize(
    ("asked", "used", "says"),
    [
        (4, 0, "Free devices that are held idle: claimctl release slice -n ml"),
        (12, 0, "the pod asks for 12 such devices, and node n1 has 4, 0 of them in use"),
        (4, 1, "the pod asks for 4 such devices, and node n1 has 4, 1 of them in use"),
    ],
)
async def test_a_release_is_offered_only_if_its_devices_may_be_enough(
    asked: int, used: int, says: str
) -> None:
    server = Server.started()
    has_devices(server, "slice", server.deployment(replicas=0))
    server.reservation(status={"idleSince": "2026-01-01T00:00:00Z"}, retentionPolicy="Persistent")
    for number in range(used):
        has_devices(server, f"used{number}", server.pod("user"))
    publish(server, "slice", "used0", "c", "d")
    asks(server, "mine", count=asked)
    server.pod("late", claim="mine", node="")
    unschedulable(server, "late")
    shown = await explain_pod(server.client, NAMESPACE, "late", server.clock)
    assert pod_advice(shown)[0].endswith(says)
    assert ("claimctl release" in pod_advice(shown)[0]) == (asked == 4 and not used)


@pytest.mark.parametrize("status", [{"consumers": 1}, {}], ids=["in use", "not written yet"])
async def test_a_claim_in_use_is_not_called_idle(status: dict[str, Any]) -> None:
    server = Server.started()
    reference = server.deployment()
    has_devices(server, "slice", reference, server.pod("user"))
    server.reservation(status=status)
    asks(server, "mine")
    server.pod("late", claim="mine", node="")
    found = await explain_pod(server.client, NAMESPACE, "late", server.clock)
    assert [rival.idle for rival in found.rivals] == [False]
    assert pod_advice(found)[-1].endswith("claimctl explain slice -n ml")


def test_warnings_are_in_the_order_in_which_they_were_last_seen() -> None:
    def at(time: str) -> str:
        return f"2026-11-24T{time}:00.000000Z"

    def seen(time: str) -> EventSeries:
        return EventSeries(last_observed_time=at(time))

    events = [
        Event(reason="4", event_time=at("10:00"), series=seen("10:09")),
        Event(reason="1", deprecated_last_timestamp="2026-11-24T10:01:00Z"),
        Event(reason="3", event_time=at("10:05")),
        Event(reason="2", event_time=at("10:01"), series=seen("10:02")),
    ]
    assert [each.reason for each in sorted(events, key=last_seen)] == ["1", "2", "3", "4"]


def owned(server: Server, name: str, uid: str) -> None:
    """Let the pod be one of the StatefulSet with this UID."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "shard",
        "uid": uid,
        "controller": True,
    }
    server.admin.patch("pods", NAMESPACE, name, {"metadata": {"ownerReferences": [owner]}})


async def test_a_workload_shows_its_claims_its_pods_and_what_helps() -> None:
    server = Server.started()
    labels = {"app": "shard"}
    pod_spec = {
        "containers": [{"name": "main", "image": "x"}],
        "resourceClaims": [
            {"name": "gpu", "resourceClaimName": "slice"},
            {"name": "nic", "resourceClaimName": "nosuch"},
        ],
    }
    spec = {
        "replicas": 2,
        "serviceName": "shard",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec},
    }
    meta = {"name": "shard", "namespace": NAMESPACE}
    made = server.admin.create("statefulsets", {"metadata": meta, "spec": spec})
    asks(server, "slice")
    for name, node in (("shard-0", "n1"), ("shard-1", "")):
        server.pod(name, node=node)
        owned(server, name, made["metadata"]["uid"])
    unschedulable(server, "shard-1")
    server.pod("foreign", node="")
    found = await explain_workload(server.client, NAMESPACE, "StatefulSet", "shard", server.clock)
    lines = workload_lines(found)
    assert lines[:2] == [
        "StatefulSet: ml/shard",
        "Wants:      2 pods; 1 running, 1 waiting for a node",
    ]
    assert "  claim nosuch does not exist" in lines
    assert any(line.startswith("  shard-1: Unschedulable: ") for line in lines)
    assert not any("foreign" in line for line in lines)
    assert (
        "Create claim nosuch in namespace ml, or name one that exists: "
        "kubectl -n ml get resourceclaims"
    ) in workload_advice(found)
    assert any("annotate statefulset/shard" in line for line in workload_advice(found))
    document = as_json(workload_of(found))
    assert (document["pods"], document["missingClaims"]) == ({"bound": 1, "pending": 1}, ["nosuch"])


@pytest.mark.parametrize(("claims", "more"), [(["gang-gpu"], 0), (list("abcde"), 2), ([], 0)])
async def test_claims_that_are_made_for_the_pods_or_their_group_are_claims_of_the_workload(
    claims: list[str], more: int
) -> None:
    server = Server.started()
    entry = {"name": "gpu", "resourceClaimTemplateName": "gpus"}
    spec = {"containers": [{"name": "main", "image": "x"}], "resourceClaims": [entry]}
    labels = {"matchLabels": {"app": "shard"}}
    template = {"metadata": {"labels": labels["matchLabels"]}, "spec": spec}
    body = {"replicas": 2, "serviceName": "x", "selector": labels, "template": template}
    meta = {"name": "shard", "namespace": NAMESPACE}
    made = server.admin.create("statefulsets", {"metadata": meta, "spec": body})
    for claim in claims:
        has_devices(server, claim)
        for pod in (f"{claim}-0", f"{claim}-1"):
            server.admin.create("pods", {"metadata": {**meta, "name": pod}, "spec": spec})
            server.admin.bind(NAMESPACE, pod, "n1")
            named = [{"name": "gpu", "resourceClaimName": claim}]
            status = {"phase": "Running", "resourceClaimStatuses": named}
            server.admin.patch("pods", NAMESPACE, pod, {"status": status}, "status")
            owned(server, pod, made["metadata"]["uid"])
    found = await explain_workload(server.client, NAMESPACE, "StatefulSet", "shard", server.clock)
    lines = workload_lines(found)
    assert ("  its pods name no existing claim" in lines) is (not claims)
    assert [it.view.name for it in found.claims] == claims[:3]
    assert ("  and 2 more claims" in lines) is (more == 2)


async def test_a_pod_that_a_hold_pins_is_led_to_the_release_and_not_to_itself() -> None:
    server = Server.started()
    has_devices(server, "slice", server.deployment())
    publish(server, "slice")
    server.reservation()
    server.pod("late", node="")
    unschedulable(server, "late", "Insufficient cpu")
    await server.clock.sleep(15)
    found = await explain_pod(server.client, NAMESPACE, "late", server.clock)
    assert found.reasons()[0][0] == "Unschedulable"
    assert pod_advice(found) == (
        "claimctl gives the claim up by itself; to do it now: claimctl release slice -n ml",
    )


async def test_a_reservation_whose_claim_is_missing_is_not_denied() -> None:
    server = Server.started()
    server.deployment(annotations={"claimctl.io/reserve": "*"})
    server.reservation()
    found = await explain_workload(server.client, NAMESPACE, "Deployment", "train", server.clock)
    text = "\n".join(workload_lines(found))
    assert "there is no ClaimReservation yet" not in text
    assert "the claim of ClaimReservation train is not there" in text


async def test_an_annotation_that_nothing_acts_on_is_told() -> None:
    server = Server.started()
    server.claim("slice", server.deployment(annotations={"claimctl.io/reserve": "*"}))
    found = await explain_workload(server.client, NAMESPACE, "Deployment", "train", server.clock)
    assert any("there is no ClaimReservation yet" in line for line in workload_lines(found))
    assert workload_advice(found) == [SEE_WHETHER]


async def test_a_workload_whose_reservation_a_limit_refuses_shows_what_is_allowed() -> None:
    server = Server.started()
    reference = server.deployment(annotations={"claimctl.io/reserve": "*"})
    has_devices(server, "slice", reference)
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "train", "namespace": NAMESPACE}
    for number, reason in enumerate(("LimitExceeded", "Forbidden")):
        event = {
            "metadata": {"name": f"train.{number}", "namespace": NAMESPACE},
            "regarding": {**about, "uid": reference["uid"]},
            "type": "Warning",
            "reason": reason,
            "note": f"{reason}: ask gpu-admins@example.com",
            "action": "Reserve",
            "eventTime": "2026-03-01T12:00:00.000000Z",
            "reportingController": "claimctl.io/controller",
            "reportingInstance": "x",
        }
        await server.client.create(EVENTS, event, NAMESPACE)
    shown = await explain_workload(server.client, NAMESPACE, "Deployment", "train", server.clock)
    assert "  LimitExceeded: ask gpu-admins@example.com" in workload_lines(shown)
    assert [problem["reason"] for problem in as_json(workload_of(shown))["problems"]] == [
        "LimitExceeded"
    ]
    server.reservation()
    now = await explain_workload(server.client, NAMESPACE, "Deployment", "train", server.clock)
    assert now.problems == ()


async def test_what_has_ended_needs_no_claim_and_no_hold_any_more() -> None:
    server = Server.started()
    labels = {"app": "train"}
    template = {
        "containers": [{"name": "main", "image": "x"}],
        "restartPolicy": "Never",
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
    }
    note = {"claimctl.io/reserve": "*"}
    meta = {"name": "train", "namespace": NAMESPACE, "annotations": note}
    body = {"metadata": {"labels": labels}, "spec": template}
    server.admin.create("jobs", {"metadata": meta, "spec": {"template": body}})
    server.pod("done")
    server.admin.patch("pods", NAMESPACE, "done", {"status": {"phase": "Succeeded"}}, "status")
    found = await explain_workload(server.client, NAMESPACE, "Job", "train", server.clock)
    assert workload_advice(found)[0].startswith("Create claim slice")
    ends = [{"type": type_, "status": "True"} for type_ in ("SuccessCriteriaMet", "Complete")]
    times = {"startTime": "2026-03-01T12:00:00Z", "completionTime": "2026-03-01T12:00:00Z"}
    status = {"status": {"conditions": ends, **times}}
    server.admin.patch("jobs", NAMESPACE, "train", status, "status")
    found = await explain_workload(server.client, NAMESPACE, "Job", "train", server.clock)
    assert workload_advice(found) == [WELL]
    pod = await explain_pod(server.client, NAMESPACE, "done", server.clock)
    assert next_steps(pod) == (WELL,)
