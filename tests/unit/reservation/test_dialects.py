"""Which claims may carry a workload reference, by dialect."""

from __future__ import annotations

import pytest

from claimctl.wire.claims import Reference
from tests.support.builders import claim, deployment_ref, pod_ref, running
from tests.support.claim_cases import ACTIVE, NATIVE, WORKLOAD, condition, lists, stage


def test_native_adds_the_reference_only_where_the_allocation_serves_any_pod() -> None:
    on = stage(claim(shared=True, created_for=WORKLOAD), ACTIVE, NATIVE, recorded=False)
    on.put(running("a"))
    assert lists(on.settle()) == [((WORKLOAD,), False)]
    on = stage(claim(pod_ref("a"), created_for=WORKLOAD), ACTIVE, NATIVE, recorded=False)
    on.put(running("a"))
    assert lists(on.settle()) == []
    assert condition(on, "Reserved") == ("False", "ClaimNotCreatedForWorkload")


@pytest.mark.parametrize(
    ("created_for", "reason"),
    [
        (None, "ClaimNotCreatedForWorkload"),
        (deployment_ref("other", "uid-other"), "AlreadyReservedFor"),
    ],
)
def test_native_refuses_claims_made_for_somebody_else(
    created_for: Reference | None, reason: str
) -> None:
    on = stage(claim(pod_ref("a"), created_for=created_for), ACTIVE, NATIVE, recorded=False)
    on.put(running("a"))
    assert on.settle(seconds=60) == []
    assert condition(on, "Reserved") == ("False", reason)


def test_native_folds_live_pod_references_into_the_workload_reference() -> None:
    on = stage(claim(pod_ref("a"), pod_ref("b"), shared=True, created_for=WORKLOAD), ACTIVE, NATIVE)
    on.put(running("a"), running("b"))
    assert lists(on.settle()) == [((WORKLOAD,), False)]
