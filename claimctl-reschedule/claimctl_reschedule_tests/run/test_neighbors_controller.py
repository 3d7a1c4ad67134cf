"""Whether a controller acts, and since when: from its Lease."""

from __future__ import annotations

import pytest

from claimctl.wire.base import from_plain
from claimctl.wire.coordination import Lease, micro_time
from claimctl_reschedule.run.neighbors import controller_of
from tests.support.builders import NOW, after


def lease(holder: str = "one", renewed: float = -5) -> Lease:
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "acquireTime": micro_time(after(-90)),
        "renewTime": micro_time(after(renewed)),
    }
    return from_plain({"metadata": {}, "spec": spec}, Lease)


def test_the_holder_of_the_lease_leads_since_it_has_acquired_it() -> None:
    assert controller_of(lease(), "Lease x", NOW).since == after(-90)


@pytest.mark.parametrize(
    ("given", "text"),
    [(lease(holder=""), "the Lease x has no holder"), (lease(renewed=-21), "has renewed the")],
    ids=["released", "not renewed in time"],
)
def test_without_a_holder_that_renews_it_no_controller_acts(given: Lease, text: str) -> None:
    controller = controller_of(given, "Lease x", NOW)
    assert controller.since is None
    assert text in controller.detail
