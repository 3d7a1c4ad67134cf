"""The workloads that hold a claim: each is read once, and explain says why one creates no pods."""

from __future__ import annotations

from collections import Counter

import pytest
from kube_in_process.storage.requests import FaultPoint

from claimctl.commands.claims.advice import advice
from claimctl.commands.claims.claim_document import explanation_of
from claimctl.commands.claims.explanation import Explanation, explain
from claimctl.commands.claims.pod_advice import WELL
from claimctl.commands.claims.workload_advice import workload_advice
from claimctl.commands.claims.workload_explanation import explain_workload
from claimctl.reservation.facts.workloads import WorkloadPhase
from tests.support.builders import NOW
from tests.support.claim_server import NAMESPACE, Server
from tests.support.explained import claim_lines, workload_lines
from tests.support.printed import as_json

QUOTA = 'pods "train-1-" is forbidden: exceeded quota: none, requested: pods=1, limited: pods=0'
LINE = f"Deployment train cannot create pods (FailedCreate): {QUOTA}"
ADVICE = (
    "Let train create pods, or give its devices back: scale the Deployment to 0, or delete it: "
    "kubectl -n ml scale deployment/train --replicas=0"
)


def held(server: Server, status: str = "True", replicas: int = 1) -> None:
    """A claim that is held for a Deployment with this condition."""
    reference = server.deployment(replicas=replicas)
    condition = {
        "type": "ReplicaFailure",
        "status": status,
        "reason": "FailedCreate",
        "message": QUOTA,
    }
    reported = {"status": {"conditions": [condition]}}
    server.admin.patch("deployments", NAMESPACE, "train", reported, "status")
    server.claim("slice", reference)
    server.reservation(status=server.held_status(reference))


async def explained(server: Server) -> Explanation:
    return await explain(server.client, NAMESPACE, "slice", server.clock.now())


async def test_a_quota_that_forbids_the_pods_is_named() -> None:
    server = Server.started()
    held(server)
    told = await explained(server)
    assert f"    {LINE}" in claim_lines(told)
    assert advice(told) == (ADVICE,)
    assert as_json(explanation_of(told, NOW))["uncreated"] == [LINE]


async def test_the_explanation_of_the_workload_names_it_too() -> None:
    server = Server.started()
    held(server)
    told = await explain_workload(server.client, NAMESPACE, "Deployment", "train", server.clock)
    assert any(line.strip() == LINE for line in workload_lines(told))
    assert ADVICE in workload_advice(told)


@pytest.mark.parametrize(("status", "replicas"), [("False", 1), ("True", 0)])
async def test_a_failure_that_is_over_or_wants_no_pod_is_no_news(
    status: str, replicas: int
) -> None:
    server = Server.started()
    held(server, status, replicas)
    told = await explained(server)
    assert told.uncreated == {}
    assert WELL in advice(told)


async def test_conditions_that_cannot_be_read_are_no_news() -> None:
    server = Server.started()
    held(server)
    server.spoil("deployments", "train", "status", "conditions")
    told = await explained(server)
    assert told.uncreated == {}
    assert told.assessment.retentions[0].held.workload.phase is WorkloadPhase.ACTIVE


async def test_a_deployment_is_read_once() -> None:
    server, reads = Server.started(), Counter[str]()
    held(server)
    server.pod("train-a")
    uid = server.admin.get("deployments", NAMESPACE, "train")["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "train", "uid": uid}
    owners = {"metadata": {"ownerReferences": [{**owner, "controller": True}]}}
    server.admin.patch("pods", NAMESPACE, "train-a", owners)

    def count(point: FaultPoint) -> None:
        reads[point.plural] += point.verb == "get"

    server.handler.fault = count
    told = await explained(server)
    assert told.assessment.retentions[0].held.workload.uid == uid
    assert reads["deployments"] == 1
