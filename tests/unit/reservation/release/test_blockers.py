"""What blocks a release, and for how long."""

from __future__ import annotations

from tests.support.builders import claim, pod_ref, running
from tests.support.claim_cases import GONE, HOLD, NATIVE, WORKLOAD, condition, stage


def test_a_consumer_keeps_the_claim_of_an_ended_workload() -> None:
    for shared in (False, True):
        refs = (WORKLOAD,) if shared else (pod_ref("a"), WORKLOAD)
        created_for = WORKLOAD if shared else None
        on = stage(
            claim(*refs, shared=shared, created_for=created_for), GONE, NATIVE if shared else HOLD
        )
        on.put(running("a"))
        assert on.settle(seconds=3600) == []
        assert condition(on, "Released") == ("False", "ConsumersLeft")
