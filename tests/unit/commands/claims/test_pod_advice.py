"""What to do about a pod that waits."""

from __future__ import annotations

import pytest
from kube_in_process.options import Preset
from kube_in_process.storage.requests import Fault

from claimctl.commands.claims.pod_advice import pod_advice
from claimctl.commands.claims.pod_explanation import explain_pod
from claimctl.wire.resources import PODGROUPS
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
