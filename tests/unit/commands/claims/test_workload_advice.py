"""What to do about a workload."""

from __future__ import annotations

from claimctl.commands.claims.advice import SEE_WHETHER
from claimctl.commands.claims.pod_advice import WELL, next_steps
from claimctl.commands.claims.pod_explanation import explain_pod
from claimctl.commands.claims.workload_advice import workload_advice
from claimctl.commands.claims.workload_explanation import explain_workload
from tests.support.claim_server import NAMESPACE, Server
from tests.support.explained import workload_lines


async def test_an_annotation_that_nothing_acts_on_is_told() -> None:
    server = Server.started()
    server.claim("slice", server.deployment(annotations={"claimctl.io/reserve": "*"}))
    found = await explain_workload(server.client, NAMESPACE, "Deployment", "train", server.clock)
    assert any("there is no ClaimReservation yet" in line for line in workload_lines(found))
    assert workload_advice(found) == [SEE_WHETHER]


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
