"""What statuses record of what only a controller can know."""

from __future__ import annotations

from datetime import timedelta

import pytest

from claimctl.commands.claims.advice import advice
from claimctl.commands.claims.claim_document import explanation_of
from claimctl.commands.claims.explanation import Explanation, explain
from claimctl.commands.claims.release_waits import release_steps, until, waits_for
from tests.support.builders import NOW
from tests.support.claim_server import NAMESPACE, Server
from tests.support.diagnosing import elected
from tests.support.explained import claim_lines
from tests.support.printed import as_json


async def explained(server: Server) -> Explanation:
    return await explain(server.client, NAMESPACE, "slice", server.clock.now())


async def test_a_ghost_stands_against_a_release_for_the_rest_of_its_grace() -> None:
    server = Server.started()
    reference = server.deployment(replicas=0)
    server.claim("slice", reference)
    since = (NOW - timedelta(seconds=100)).strftime("%Y-%m-%dT%H:%M:%SZ")
    ghost = {"uid": "g-1", "name": "lost", "nodeName": "n1", "since": since}
    server.reservation(status=server.held_status(reference) | {"forceDeletedPods": [ghost]})
    told = await explained(server)
    (blocker,) = told.obstacles
    assert (blocker.reason, blocker.after) == ("ForceDeletedPods", 200.0)
    assert "pod lost vanished while running on n1" in blocker.message


async def test_a_pod_that_may_be_bound_stands_against_a_release_for_the_rest_of_the_wait() -> None:
    server = Server.started()
    reference = server.deployment()
    server.claim("slice", reference)
    server.pod("late", node="")
    since = (NOW - timedelta(seconds=20)).strftime("%Y-%m-%dT%H:%M:%SZ")
    release = {"step": "Fenced", "reason": "Withdrawn", "since": since, "claimUID": "any"}
    server.reservation(status=server.held_status(reference) | {"release": release})
    finalizers = {"metadata": {"finalizers": ["claimctl.io/release"]}}
    server.admin.patch("claimreservations", NAMESPACE, "train", finalizers)
    server.admin.delete("claimreservations", NAMESPACE, "train")
    status = {"status": {"reservedFor": None}}
    server.admin.patch("resourceclaims", NAMESPACE, "slice", status, "status")
    told = await explained(server)
    assert [(each.reason, each.after) for each in told.obstacles] == [("PodsMayBeBound", 40.0)]
    text = "a scheduler that still sees an older version of the claim may bind 1 pod: late"
    said = (
        f"  PodsMayBeBound: {text} (until {NOW + timedelta(seconds=40):%Y-%m-%dT%H:%M:%SZ} by the "
        "controller's clock, 40s left)"
    )
    assert (
        as_json(explanation_of(told, NOW))["release"]["blockers"][0]["until"]
        == "2026-03-01T12:00:40Z"
    )
    assert claim_lines(told)[-4:-1] == ["Release:    in progress (Withdrawn)", said, "What to do:"]
    assert advice(told)[0].startswith("Wait: it ends by itself.")


@pytest.mark.parametrize(("led_before", "left"), [(1000.0, 200), (50.0, 250)])
async def test_a_controller_that_has_started_since_counts_from_its_own_start(
    led_before: float, left: int
) -> None:
    server = Server.started()
    reference = server.deployment(replicas=0)
    server.claim("slice", reference)
    since = f"{NOW - timedelta(seconds=100):%Y-%m-%dT%H:%M:%SZ}"
    ghost = {"uid": "g-1", "name": "lost", "nodeName": "n1", "since": since}
    server.reservation(status=server.held_status(reference) | {"forceDeletedPods": [ghost]})
    finalizers = {"metadata": {"finalizers": ["claimctl.io/release"]}}
    server.admin.patch("claimreservations", NAMESPACE, "train", finalizers)
    server.admin.delete("claimreservations", NAMESPACE, "train")
    elected(server, led_before=led_before)
    told = await explain(server.client, NAMESPACE, "slice", server.clock.now())
    (blocker,) = told.obstacles
    end = until(told, blocker)
    assert end is not None
    assert round((end - NOW).total_seconds()) == left
    (line,) = waits_for(told)
    assert ("began to lead" in line) == (left == 250)
    assert list(release_steps(told)) == [
        "Wait until the kubelet of n1 has ended lost, and its driver has unprepared the devices.",
        "If node n1 is off for good, say so: claimctl release slice -n ml --node-is-off n1",
    ]
