"""What to do about a pod that waits."""

from __future__ import annotations

import pytest
from kube_in_process.options import Preset
from kube_in_process.storage.requests import Fault

from claimctl.commands.claims.pod_advice import pod_advice
from claimctl.commands.claims.pod_explanation import explain_pod
from claimctl.wire.resources import EVENTS, PODGROUPS
from tests.support.claim_server import NAMESPACE, Server


async def test_a_release_that_is_under_way_takes_a_moment() -> None:
    server = Server.started()
    reference = server.deployment()
    server.claim("slice", reference)
    release = {"step": "Fenced", "reason": "Withdrawn", "claimUID": "any"}
    server.reservation(status=server.held_status(reference) | {"release": release})
    server.withdraw()
    server.pod("late", node="")
    found = await explain_pod(server.client, NAMESPACE, "late", server.clock)
    assert found.reasons()[0][0] == "ClaimReleasing"
    assert "Wait a moment" in pod_advice(found)[0]


async def test_the_event_about_a_template_says_why_no_claim_is_made() -> None:
    server = Server.started()
    entry = {"name": "gpu", "resourceClaimTemplateName": "big"}
    spec = {"containers": [{"name": "main", "image": "x"}], "resourceClaims": [entry]}
    meta = {"name": "late", "namespace": NAMESPACE}
    pod = server.admin.create("pods", {"metadata": meta, "spec": spec})
    found = await explain_pod(server.client, NAMESPACE, "late", server.clock)
    text = "the claim from template big is not made yet"
    assert found.reasons() == (("ClaimNotMade", text),)
    assert pod_advice(found) == ("Wait a moment, and look again.",)
    event = {
        "metadata": {"name": "late.1", "namespace": NAMESPACE},
        "regarding": {"kind": "Pod", "uid": pod["metadata"]["uid"], **meta},
        "reason": "FailedResourceClaimCreation",
        "note": 'PodResourceClaim gpu: template "big" not found',
        "type": "Warning",
        "eventTime": "2026-03-01T12:00:00.000000Z",
        "action": "Create",
        "reportingController": "resource_claim",
        "reportingInstance": "resource_claim",
    }
    await server.client.create(EVENTS, event, NAMESPACE)
    found = await explain_pod(server.client, NAMESPACE, "late", server.clock)
    assert found.reasons() == (("ClaimNotMade", f"{text}: {event['note']}"),)
    (step,) = pod_advice(found)
    assert step.endswith("the templates that there are: kubectl -n ml get resourceclaimtemplates")


@pytest.mark.parametrize(
    ("spec", "refused", "advice"),
    [
        ({"upgradeTo": "1.37"}, False, "Wait: an upgrade has taken the PodGroups away; the next"),
        ({}, False, "Create the PodGroup."),
        (None, False, "Create the PodGroup."),
        (None, True, "Create the PodGroup, or run `claimctl upgrade status` if it was deleted"),
    ],
    ids=["an upgrade", "a downgrade", "no plan", "plans may not be read"],
)
async def test_the_plan_says_what_to_do_about_a_missing_group(
    spec: dict[str, str] | None, refused: bool, advice: str
) -> None:
    server = Server.started(dialect=Preset.POD_GROUPS)
    server.client.use_version(PODGROUPS.group, "v1alpha2")
    server.pod("a", node="", group="train")
    server.claim("slice")
    if spec is not None:
        await server.plan(**spec)
    if refused:
        fault = Fault(status=403, reason="Forbidden", message="downgradeplans")
        server.upon("list", "downgradeplans", lambda _: fault)
    found = await explain_pod(server.client, NAMESPACE, "a", server.clock)
    assert pod_advice(found)[0].startswith(advice)
