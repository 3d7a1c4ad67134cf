"""Requests of ``claimctl release`` that have been fulfilled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.reservation.decide import decide
from claimctl.reservation.decision import ClearReleaseRequest
from claimctl.wire.claims import ResourceClaim
from tests.support.builders import claim, pod_ref, reservation, running
from tests.support.claim_cases import ACTIVE, held_status, stage


@pytest.mark.parametrize(
    "now", [claim(pod_ref("a")), claim(allocated=False)], ids=["allocated anew", "free"]
)
def test_a_request_goes_first_once_its_claim_has_been_released(now: ResourceClaim) -> None:
    asked = reservation(status=held_status(), annotations={"claimctl.io/release": "uid-slice"})
    on = stage(now, ACTIVE, reserved=asked)
    if now.status.allocation is not None:
        on.put(running("a"))
    snapshot = on.snapshot()
    held = replace(snapshot.reservations[0], released_since_asked=True)
    decision = decide(replace(snapshot, reservations=(held,)))
    assert decision.write == ClearReleaseRequest(asked)
