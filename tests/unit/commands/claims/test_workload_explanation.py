"""What a workload uses and what is held for it, and why its pods wait."""

from __future__ import annotations

import pytest

from claimctl.commands.claims.workload_advice import workload_advice
from claimctl.commands.claims.workload_document import workload_of
from claimctl.commands.claims.workload_explanation import explain_workload
from claimctl.wire.resources import EVENTS
from tests.support.claim_server import NAMESPACE, Server
from tests.support.explained import workload_lines
from tests.support.printed import as_json
from tests.support.waiting import asks, has_devices, unschedulable


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


async def test_a_reservation_whose_claim_is_missing_is_not_denied() -> None:
    server = Server.started()
    server.deployment(annotations={"claimctl.io/reserve": "*"})
    server.reservation()
    found = await explain_workload(server.client, NAMESPACE, "Deployment", "train", server.clock)
    text = "\n".join(workload_lines(found))
    assert "there is no ClaimReservation yet" not in text
    assert "the claim of ClaimReservation train is not there" in text


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
