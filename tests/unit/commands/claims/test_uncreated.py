"""A held claim whose workload may not create pods: its devices lie idle, and explain says why."""

from __future__ import annotations

import pytest

from claimctl.commands.claims.advice import advice, workload_advice
from claimctl.commands.claims.claim_document import explanation_of
from claimctl.commands.claims.explanation import Explanation, explain
from claimctl.commands.claims.pod_advice import WELL
from claimctl.commands.claims.pod_explanation import explain_workload
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
