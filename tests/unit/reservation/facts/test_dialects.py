"""Which claims may carry a workload reference, by dialect."""

from __future__ import annotations

from math import inf

import pytest

from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.reasons import Reason
from claimctl.wire.claims import Reference
from tests.support.builders import claim, deployment_ref, pod_ref, running, tomb
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


OLD, EVAL = deployment_ref(uid="uid-old"), deployment_ref("eval", "uid-eval")


@pytest.mark.parametrize(
    ("created_for", "shared", "reason"),
    [
        pytest.param(WORKLOAD, True, None, id="created for the workload"),
        pytest.param(None, True, Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD, id="created for none"),
        pytest.param(EVAL, True, Reason.ALREADY_RESERVED_FOR, id="created for another workload"),
        pytest.param(OLD, True, Reason.WORKLOAD_RECREATED, id="created for an earlier incarnation"),
        pytest.param(
            WORKLOAD, False, Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD, id="allocated for listed pods"
        ),
    ],
)
def test_native_alone_refuses_a_claim(
    created_for: Reference | None, shared: bool, reason: Reason | None
) -> None:
    on = claim(created_for=created_for, shared=shared)
    found = {name: dialect.refuses(on, WORKLOAD) for name, dialect in DIALECTS.items()}
    assert found == {"native": reason, "hold": None, "podgroup": None}


LISTED, TOMBSTONE = pod_ref("a"), tomb("b")


@pytest.mark.parametrize(
    ("name", "created_for", "groups", "unlisted", "left"),
    [
        ("native", WORKLOAD, False, True, ()),
        ("hold", None, False, False, (WORKLOAD, TOMBSTONE)),
        ("podgroup", None, True, False, (WORKLOAD, TOMBSTONE)),
    ],
)
def test_a_dialect(
    name: str,
    created_for: Reference | None,
    groups: bool,
    unlisted: bool,
    left: tuple[Reference, ...],
) -> None:
    dialect = DIALECTS[name]
    assert (dialect.created_for(WORKLOAD), dialect.groups) == (created_for, groups)
    assert not dialect.admits_unlisted((LISTED,))
    assert dialect.admits_unlisted((LISTED, WORKLOAD)) == unlisted
    assert dialect.unlisted_age(7.0) == (7.0 if unlisted else inf)
    assert dialect.kept_at_fence((WORKLOAD, TOMBSTONE)) == left


@pytest.mark.parametrize(
    ("name", "shared", "listed"),
    [("native", False, False), ("hold", False, True), ("hold", True, False)],
)
def test_schedulers_list_each_pod(name: str, shared: bool, listed: bool) -> None:
    assert DIALECTS[name].lists_each_pod(claim(shared=shared)) == listed
