"""What a release waits for, until when, and what to do about it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from claimctl.commands.claims.explanation import explain
from claimctl.commands.claims.release_waits import (
    release_steps,
    until,
    waits_for,
    words_of_wait,
)
from tests.support.builders import NOW
from tests.support.claim_server import NAMESPACE, Server
from tests.support.diagnosing import elected

END, BEGAN = "2026-03-01T12:05:00Z", "2026-03-01T12:00:00Z"


@pytest.mark.parametrize(
    ("reason", "after", "end", "since", "text"),
    [
        ("ConsumersLeft", None, None, None, ""),
        ("ForceDeletedPods", 300.0, END, None,
         f"until {END} by the controller's clock, 5m left"),
        ("ForceDeletedPods", 300.0, END, BEGAN,
         f"5m left: it began to lead at {BEGAN}, and counts from then at the latest"),
        ("PodsMayBeBound", 60.0, None, None, "at most 60 s from the controller's first sight"),
        ("HistoryUnknown", 60.0, None, None, ""),
    ],
)  # fmt: skip
def test_the_end_of_a_wait_is_told_as_far_as_it_is_known(
    reason: str, after: float | None, end: str | None, since: str | None, text: str
) -> None:
    said = words_of_wait(reason, after, end, since)
    assert text in said
    assert bool(said) == bool(text)


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
    server.withdraw()
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
