"""What explain finds out by itself: the controller's own judgement on live objects."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from claimctl.cli.explain import document, lines
from claimctl.inspect.explain import Explanation, explain
from tests.support.builders import NOW
from tests.unit.downgrade.server import NAMESPACE, TRAIN, Server


def deployment(server: Server, replicas: int = 1) -> dict[str, str]:
    """The Deployment train, and the reference to it."""
    pod_spec = {
        "containers": [{"name": "main", "image": "x"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
    }
    labels = {"app": "train"}
    created = server.admin.create(
        "deployments",
        {
            "metadata": {"name": "train", "namespace": NAMESPACE},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod_spec},
            },
        },
    )
    return {**TRAIN, "uid": created["metadata"]["uid"]}


def reserved(server: Server, status: dict[str, Any] | None = None, **spec: Any) -> None:
    ref = {"apiGroup": "apps", "kind": "Deployment", "name": "train"}
    server.admin.create(
        "claimreservations",
        {
            "apiVersion": "claimctl.io/v1alpha1",
            "kind": "ClaimReservation",
            "metadata": {"name": "train", "namespace": NAMESPACE},
            "spec": {"resourceClaimName": "slice", "workloadRef": ref, **spec},
        },
    )
    if status:
        server.admin.patch("claimreservations", NAMESPACE, "train", {"status": status}, "status")


async def explained(server: Server) -> Explanation:
    return await explain(server.client, NAMESPACE, "slice", server.clock.now())


def held(server: Server, reference: dict[str, str]) -> dict[str, Any]:
    claim = server.admin.get("resourceclaims", NAMESPACE, "slice")
    return {"dialect": "native", "claimUID": claim["metadata"]["uid"], "reservedFor": reference}


async def test_a_held_claim_names_its_holder_and_what_would_let_it_go() -> None:
    server = Server.started()
    reference = deployment(server)
    server.claim("slice", reference)
    server.pod("a")
    reserved(server, held(server, reference))
    told = await explained(server)
    assert lines(told)[6:] == [
        "Held by:",
        "  deployments/train is listed (claimctl's)",
        "  ClaimReservation train (Deployment train, WhileRunning) holds "
        "(WorkloadWantsPods): Deployment train wants 1 pods",
        "Release:    not possible now",
        "  ConsumersLeft: 1 pods use the claim: a",
        "What to do:",
        "  Scale the workload down or delete the pods that use the claim.",
        "  Scale the workload to 0, suspend it or delete it.",
    ]


async def test_an_idle_claim_can_be_released_at_once() -> None:
    server = Server.started()
    reference = deployment(server, replicas=0)
    server.claim("slice", reference)
    reserved(server, held(server, reference), retentionPolicy="Persistent")
    told = await explained(server)
    assert (told.releasable, told.release) == (True, None)
    assert told.advice() == ("Release it with `claimctl release`, or change retentionPolicy.",)


async def test_a_ghost_stands_against_a_release_for_the_rest_of_its_grace() -> None:
    server = Server.started()
    reference = deployment(server, replicas=0)
    server.claim("slice", reference)
    since = (NOW - timedelta(seconds=100)).strftime("%Y-%m-%dT%H:%M:%SZ")
    ghost = {"uid": "g-1", "name": "lost", "nodeName": "n1", "since": since}
    reserved(server, held(server, reference) | {"forceDeletedPods": [ghost]})
    told = await explained(server)
    (blocker,) = told.obstacles
    assert (blocker.reason, blocker.after) == ("ForceDeletedPods", 200.0)
    assert "pod lost vanished while running on n1" in blocker.message


async def test_a_pod_that_may_be_bound_stands_against_a_release_for_the_rest_of_the_wait() -> None:
    server = Server.started()
    reference = deployment(server)
    server.claim("slice", reference)
    server.pod("late", node="")
    since = (NOW - timedelta(seconds=20)).strftime("%Y-%m-%dT%H:%M:%SZ")
    release = {"step": "Fenced", "reason": "Withdrawn", "since": since, "claimUID": "any"}
    reserved(server, held(server, reference) | {"release": release})
    finalizers = {"metadata": {"finalizers": ["claimctl.io/release"]}}
    server.admin.patch("claimreservations", NAMESPACE, "train", finalizers)
    server.admin.delete("claimreservations", NAMESPACE, "train")
    status = {"status": {"reservedFor": None}}
    server.admin.patch("resourceclaims", NAMESPACE, "slice", status, "status")
    told = await explained(server)
    assert [(each.reason, each.after) for each in told.obstacles] == [("PodsMayBeBound", 40.0)]
    text = "a scheduler may still bind 1 pods to the claim as it was before: late"
    said = f"  PodsMayBeBound: {text} (for at most 40 s more)"
    assert lines(told)[-4:-1] == ["Release:    in progress (Withdrawn)", said, "What to do:"]
    assert told.advice()[0].startswith("Wait: it ends by itself.")


async def test_a_foreign_reference_is_named_and_left_to_its_owner() -> None:
    server = Server.started()
    reference = deployment(server, replicas=0)
    machine = {
        "apiGroup": "kubevirt.io", "resource": "virtualmachines", "name": "vm", "uid": "v-1"
    }  # fmt: skip
    server.claim("slice", reference, machine)
    reserved(server, held(server, reference))
    told = await explained(server)
    assert "  virtualmachines/vm is listed (not claimctl's)" in lines(told)
    assert [blocker.reason for blocker in told.obstacles] == ["UnknownReferences"]


async def test_a_reservation_without_its_workload_says_so() -> None:
    server = Server.started()
    server.claim("slice", server.pod("a"))
    reserved(server)
    told = await explained(server)
    assert "inactive (WorkloadNotFound)" in "\n".join(lines(told))
    assert "Create the workload" in told.advice()[1]


async def test_the_document_carries_the_verdict() -> None:
    server = Server.started()
    reference = deployment(server)
    server.claim("slice", reference)
    server.pod("a")
    reserved(server, held(server, reference))
    told = document(await explained(server), NOW)
    assert (told["apiVersion"], told["kind"]) == (
        "cli.claimctl.io/v1alpha1",
        "ClaimExplanation",
    )
    assert told["claim"]["state"] == "Held"
    assert told["reservations"][0]["stand"] == "Hold"
    assert told["release"] == {
        "underWay": None,
        "possible": False,
        "blockers": [
            {
                "reason": "ConsumersLeft",
                "message": "1 pods use the claim: a",
                "afterSeconds": None,
            }
        ],
    }
