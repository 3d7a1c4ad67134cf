"""Which references claimctl may remove from a claim, as the witness judges it."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.storage.store import Address, Author

from claimctl_witness.witness import (
    LISTED_AGAIN,
    LISTED_UNFIT,
    LISTED_WITHOUT_HOLD,
    REMOVED_FOREIGN,
)
from claimctl_witness_tests.past import ALLOCATED, KCM, OWN, US, Past, held, rules

THING = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "x"}
SCHEDULER = "system:kube-scheduler"


def test_removing_what_others_listed() -> None:
    past = Past().claim(held(THING, OWN)).claim(held(OWN), by=US)
    assert rules(past) == [REMOVED_FOREIGN]


def test_removing_a_group_of_another_scheduler() -> None:
    theirs = {
        "apiGroup": "scheduling.volcano.sh",
        "resource": "podgroups",
        "name": "x",
        "uid": "x",
    }
    past = Past().claim(held(theirs, OWN)).claim(held(OWN), by=US)
    assert rules(past) == [REMOVED_FOREIGN]


def test_removing_what_claimctl_added_itself_is_its_right() -> None:
    past = Past().claim(held(THING)).claim(held(THING, OWN), by=US).claim(held(THING), by=US)
    assert rules(past) == []


def test_an_empty_list_is_a_fence_where_the_scheduler_lists_no_pod_beside_a_hold() -> None:
    past = Past()
    where = Address("claimctl.io", "claimreservations", "ml", "r")
    body = {
        "metadata": {"namespace": "ml", "name": "r"},
        "spec": {"resourceClaimName": "slice"},
        "status": {"dialect": "native"},
    }
    past.store.put(where, body, Author(US, "update"))
    assert rules(past.claim(ALLOCATED).claim(held(OWN), by=US).claim(ALLOCATED, by=US)) == []


def pod(past: Past, **changes: str) -> Past:
    return past.pod(**{"phase": "Pending", "node": "", **changes})


def entry(past: Past) -> dict[str, str]:
    """The entry of the pod ``train-0``."""
    past.violations()
    uid = past.world.pods["ml"]["train-0"].metadata.uid
    return {"resource": "pods", "name": "train-0", "uid": uid}


def waiting(**spec: Any) -> tuple[Past, dict[str, str]]:
    past = Past()
    past.more = spec
    pod(past.claim(ALLOCATED).claim(held(OWN), by=US))
    return past, entry(past)


def test_a_pending_pod_may_be_listed_beside_the_hold() -> None:
    past, listed = waiting()
    assert rules(past.claim(held(OWN, listed), by=US)) == []


def test_a_pending_pod_may_be_listed_beside_the_hold_of_any_kind_that_is_reserved_for() -> None:
    past = Past()
    ref = {"apiGroup": "example.com", "kind": "Thing", "name": "x"}
    past.store.put(
        Address("claimctl.io", "claimreservations", "ml", "r"),
        {
            "metadata": {"namespace": "ml", "name": "r"},
            "spec": {"resourceClaimName": "slice", "workloadRef": ref},
        },
        Author(US, "update"),
    )
    pod(past.claim(ALLOCATED).claim(held(THING), by=US))
    assert rules(past.claim(held(THING, entry(past)), by=US)) == []


def test_a_pending_pod_may_not_be_listed_without_a_hold() -> None:
    past = pod(Past().claim(ALLOCATED))
    assert rules(past.claim(held(entry(past)), by=US)) == [LISTED_WITHOUT_HOLD]


def test_a_pending_pod_may_be_listed_without_a_hold_if_any_pod_may_be_bound() -> None:
    for_any_pod = {"allocation": {**ALLOCATED["allocation"], "reservedForAnyPod": True}}
    past = pod(Past().claim(for_any_pod))
    assert rules(past.claim(held(entry(past)) | for_any_pod, by=US)) == []


def test_a_pod_whose_entry_was_removed_may_not_be_listed_again() -> None:
    past, listed = waiting()
    past.claim(held(OWN, listed), by=US).claim(held(OWN), by=SCHEDULER)
    assert rules(past.claim(held(OWN, listed), by=US)) == [LISTED_AGAIN]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"resourceClaims": []}, id="it uses another claim"),
        pytest.param({"schedulingGroup": {"podGroupName": "train"}}, id="it has a PodGroup"),
        pytest.param({"schedulingGates": [{"name": "example.com/wait"}]}, id="it has a gate"),
    ],
)
def test_a_pod_that_the_scheduler_does_not_list_may_not_be_listed(spec: dict[str, Any]) -> None:
    past, listed = waiting(**spec)
    assert rules(past.claim(held(OWN, listed), by=US)) == [LISTED_UNFIT]


@pytest.mark.parametrize(
    ("policy", "claims", "faults"),
    [
        ({"basic": {}}, [], []),
        ({"basic": {}}, ["slice"], [LISTED_UNFIT]),
        ({"gang": {"minCount": 2}}, [], [LISTED_UNFIT]),
    ],
    ids=["another claim", "the claim", "a gang"],
)
def test_a_pod_of_a_group_may_be_listed_if_the_scheduler_lists_it_by_itself(
    policy: dict[str, Any], claims: list[str], faults: list[str]
) -> None:
    past, listed = waiting(schedulingGroup={"podGroupName": "train"})
    body = {
        "metadata": {"namespace": "ml", "name": "train"},
        "spec": {
            "schedulingPolicy": policy,
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name} for name in claims],
        },
    }
    where = Address("scheduling.k8s.io", "podgroups", "ml", "train")
    past.store.put(where, body, Author("kcm", "create"))
    assert rules(past.claim(held(OWN, listed), by=US)) == faults


def test_the_scheduler_may_list_a_pod_again() -> None:
    past, listed = waiting()
    past.claim(held(OWN, listed), by=US).claim(held(OWN), by=SCHEDULER)
    assert rules(past.claim(held(OWN, listed), by=SCHEDULER)) == []


def test_claimctl_may_remove_an_entry_that_it_listed_ahead_while_the_pod_does_not_run() -> None:
    past, listed = waiting()
    past.claim(held(OWN, listed), by=US)
    assert rules(past.claim(held(OWN), by=US)) == []


def test_claimctl_may_not_remove_the_entry_of_a_pod_that_runs() -> None:
    past, listed = waiting()
    pod(past.claim(held(OWN, listed), by=US), phase="Running", node="n1")
    assert rules(past.claim(held(OWN), by=US)) == [REMOVED_FOREIGN]


def test_claimctl_may_not_remove_an_entry_that_the_scheduler_wrote() -> None:
    past, listed = waiting()
    past.claim(held(OWN, listed), by=SCHEDULER)
    assert rules(past.claim(held(OWN), by=US)) == [REMOVED_FOREIGN]


def test_an_entry_that_others_wrote_anew_is_theirs() -> None:
    past, listed = waiting()
    past.claim(held(OWN, listed), by=US).claim(held(OWN), by=KCM)
    past.claim(held(OWN, listed), by=SCHEDULER)
    assert rules(past.claim(held(OWN), by=US)) == [REMOVED_FOREIGN]
