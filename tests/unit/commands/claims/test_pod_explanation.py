"""Why a pod waits, who has its devices, and the command that helps."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.commands.claims.pod_advice import pod_advice
from claimctl.commands.claims.pod_document import PodExplanation, pod_of
from claimctl.commands.claims.pod_explanation import explain_pod, last_seen
from claimctl.wire.coordination import Event, EventSeries
from tests.support.claim_server import NAMESPACE, Server
from tests.support.explained import pod_lines
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
