"""The witness notices what must never be true, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.storage.store import Address, Author

from claimctl_witness.witness import (
    DEALLOCATED_IN_USE,
    EMPTIED,
    STARTED_WITHOUT_ALLOCATION,
    STRANDED,
    TOOK_FINALIZER,
    WROTE_NOTHING,
    Violation,
)
from claimctl_witness_tests.past import (
    ALLOCATED,
    KCM,
    OWN,
    US,
    Past,
    held,
    reserved,
    rules,
)


def test_a_life_as_it_should_be_has_no_violation() -> None:
    past = Past().claim({}).pod(phase="Pending", node="").claim(ALLOCATED).pod(phase="Pending")
    past.pod().pod(phase="Succeeded").claim({}, by=US)
    assert past.violations() == []


def test_deallocating_under_a_running_pod_is_a_violation() -> None:
    assert Past().claim(ALLOCATED).pod().claim({}, by=US).violations() == [
        Violation(
            rule=DEALLOCATED_IN_USE,
            revision=4,
            namespace="ml",
            claim="slice",
            pods=("train-0",),
            message=(
                "revision 4: claim ml/slice was deallocated by claimctl under 1 pod(s), "
                "first train-0"
            ),
        )
    ]


def test_a_pod_that_is_bound_and_has_not_started_counts_as_a_consumer() -> None:
    past = Past().claim(ALLOCATED).pod(phase="Pending").claim({}, by=US)
    assert [violation.rule for violation in past.violations()] == [DEALLOCATED_IN_USE]


def test_a_failed_pod_with_a_running_container_still_counts() -> None:
    running = [{"name": "main", "state": {"running": {}}}]
    past = Past().claim(ALLOCATED).pod(phase="Failed", containerStatuses=running)
    rules = [violation.rule for violation in past.claim({}, by=US).violations()]
    assert rules == [DEALLOCATED_IN_USE]


@pytest.mark.parametrize(
    "past",
    [
        pytest.param(
            Past().claim(ALLOCATED).pod().claim({}, by=KCM),
            id="somebody else did it",
        ),
        pytest.param(
            Past().claim(ALLOCATED).pod().gone().claim({}, by=US),
            id="the pod was gone",
        ),
        pytest.param(
            Past().claim(ALLOCATED).pod(phase="Pending", node="").claim({}, by=US),
            id="the pod had no node",
        ),
        pytest.param(
            Past().claim(ALLOCATED).pod().claim({**ALLOCATED, "reservedFor": []}, by=US),
            id="the allocation stayed",
        ),
    ],
)
def test_other_writes_are_not_held_against_claimctl(past: Past) -> None:
    assert past.violations() == []


def test_a_pod_that_starts_on_an_unallocated_claim_is_a_violation() -> None:
    found = Past().claim({}).pod(phase="Pending").pod().violations()
    assert [(violation.rule, violation.revision) for violation in found] == [
        (STARTED_WITHOUT_ALLOCATION, 4)
    ]


def test_a_pod_that_starts_on_a_missing_claim_is_a_violation() -> None:
    assert [violation.claim for violation in Past().pod().violations()] == ["slice"]


def test_a_pod_is_accused_once_however_often_its_status_changes() -> None:
    past = Past().claim({}).pod().pod(podIP="10.0.0.1").pod(podIP="10.0.0.2")
    assert len(past.violations()) == 1


def test_writes_to_a_claim_are_counted_by_writer() -> None:
    past = Past().claim({}).claim(ALLOCATED, by=US).claim(ALLOCATED | {"x": 1}, by=US)
    past.claim({}, by=KCM).violations()
    assert past.witness.writes == {("ml", "slice"): 2}
    assert past.witness.deallocations == {("ml", "slice"): KCM}


def test_revisions_are_judged_once_although_the_history_is_read_twice() -> None:
    past = Past().claim({}).pod()
    assert len(past.violations()) == len(past.violations()) == 1


def test_leaving_an_allocation_to_nobody() -> None:
    assert rules(Past().claim(ALLOCATED).claim(held(OWN), by=US).claim(ALLOCATED, by=US)) == [
        EMPTIED
    ]


def test_a_claim_of_a_driver_that_wants_one_pod_may_rest_while_a_reservation_names_it() -> None:
    of_driver = {"allocation": {"devices": {"results": [{"driver": "nic", "device": "gpu-0"}]}}}

    def past(made: Past, driver: str) -> list[str]:
        made.witness.one_pod_drivers = {driver}
        hold = {**of_driver, "reservedFor": [OWN]}
        return rules(made.claim(of_driver).claim(hold, by=US).claim(of_driver, by=US))

    assert past(reserved(Past(), 0), "nic") == []
    assert past(Past(), "nic") == [EMPTIED]
    assert past(reserved(Past(), 0), "gpu") == [EMPTIED]


def test_binding_a_pod_to_what_claimctl_has_deallocated() -> None:
    bound = {"phase": "Pending", "node": "n1"}
    assert rules(Past().claim(ALLOCATED).claim({}, by=US).pod(**bound)) == [STRANDED]
    assert rules(Past().claim(ALLOCATED).claim({}, by=KCM).pod(**bound)) == []
    ended = {"phase": "Failed", "node": "n1"}
    assert rules(Past().claim(ALLOCATED).claim({}, by=US).pod(**ended)) == []


def on(node: str) -> dict[str, Any]:
    """A claim that is allocated on a node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"allocation": {**ALLOCATED["allocation"], "nodeSelector": selector}}


def test_binding_a_pod_to_a_claim_that_has_other_devices_by_then() -> None:
    def past(by: str = US, after: str = "n2") -> Past:
        waiting = Past().claim(on("n1")).pod(phase="Pending", node="")
        return waiting.claim({}, by=by).claim(on(after)).pod(phase="Pending", node="n1")

    assert rules(past()) == [STRANDED]
    assert rules(past(by=KCM)) == []
    assert rules(past(after="n1")) == []


def test_a_scheduler_may_bind_the_second_pod_of_a_group_to_a_wrong_node_by_itself() -> None:
    def past(**status: str) -> Past:
        group = Past()
        group.more = {"schedulingGroup": {"podGroupName": "train"}}
        group.claim(on("n1")).pod(phase="Pending", node="", **status)
        return group.claim({}, by=US).claim(on("n2")).pod(phase="Pending", node="n1")

    assert rules(past()) == []
    assert rules(past(nominatedNodeName="n1")) == [STRANDED]


def test_a_write_that_says_nothing_new() -> None:
    assert rules(Past().claim(ALLOCATED).claim(ALLOCATED, by=US)) == [WROTE_NOTHING]


FINALIZER = {"finalizers": ["resource.kubernetes.io/delete-protection"]}


GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "g"}


def protected(past: Past, status: dict[str, Any], *, kept: bool = True, by: str = KCM) -> Past:
    meta = {"namespace": "ml", "name": "slice", **(FINALIZER if kept else {})}
    where = Address("resource.k8s.io", "resourceclaims", "ml", "slice")
    past.store.put(where, {"metadata": meta, "status": status}, Author(by, "update"))
    return past


def test_taking_the_finalizer_of_what_others_deallocated() -> None:
    past = protected(protected(Past(), ALLOCATED), {})
    assert rules(protected(past, {}, kept=False, by=US)) == [TOOK_FINALIZER]


def test_a_release_that_claimctl_began_with_a_fence_is_its_to_finish() -> None:
    past = protected(protected(Past(), held(GROUP)), held(GROUP, OWN), by=US)
    fenced = protected(past, held(), by=US)
    assert rules(protected(protected(fenced, {}), {}, kept=False, by=US)) == []


def test_a_fence_that_somebody_came_after_is_none_any_more() -> None:
    past = protected(protected(Past(), held(GROUP)), held(GROUP, OWN), by=US)
    used = protected(protected(past, held(), by=US), held(GROUP))
    assert rules(protected(protected(used, {}), {}, kept=False, by=US)) == [TOOK_FINALIZER]
