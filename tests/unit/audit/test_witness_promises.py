"""What the witness knows of claimctl's promises beyond deallocating under a pod."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.audit.witness import (
    DEALLOCATED_UNDER_GHOST,
    EMPTIED,
    REMOVED_FOREIGN,
    STRANDED,
    TOOK_FINALIZER,
    WROTE_NOTHING,
)
from claimctl.embedded.storage.store import Address, Author
from tests.unit.audit.past import ALLOCATED, KCM, US, Past

THING = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "x"}
OWN = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": "d"}


def held(*entries: dict[str, Any]) -> dict[str, Any]:
    return {**ALLOCATED, "reservedFor": list(entries)}


def rules(past: Past) -> list[str]:
    return [violation.rule for violation in past.violations()]


def reserved(past: Past, grace: int, name: str = "r") -> Past:
    spec = {"resourceClaimName": "slice", "forceDeletedPodGraceSeconds": grace}
    meta = {"namespace": "ml", "name": name, "uid": name, "finalizers": ["claimctl.io/release"]}
    where = Address("claimctl.io", "claimreservations", "ml", name)
    past.store.put(where, {"metadata": meta, "spec": spec}, Author("somebody", "create"))
    return past


def withdrawn(past: Past, name: str = "r", by: str = US) -> Past:
    where = Address("claimctl.io", "claimreservations", "ml", name)
    past.store.delete(where, Author(by, "delete"))
    return past


def test_deallocating_within_the_grace_of_a_vanished_pod() -> None:
    past = reserved(Past(), 30).claim(ALLOCATED).pod().gone().claim({}, by=US)
    assert rules(past) == [DEALLOCATED_UNDER_GHOST]


def test_a_grace_that_is_over_and_a_pod_that_was_done_are_no_ghosts() -> None:
    assert rules(reserved(Past(), 0).claim(ALLOCATED).pod().gone().claim({}, by=US)) == []
    done = reserved(Past(), 30).claim(ALLOCATED).pod().pod(phase="Succeeded").gone()
    assert rules(done.claim({}, by=US)) == []


def two(grace: int) -> Past:
    """A pod vanished under two reservations; one asked for that grace, the other for none."""
    past = reserved(reserved(Past(), grace), 0, "other")
    return past.claim(ALLOCATED).pod().gone()


def test_a_reservation_that_claimctl_lets_go_beside_another_takes_no_grace_along() -> None:
    assert rules(withdrawn(two(30)).claim({}, by=US)) == [DEALLOCATED_UNDER_GHOST]


def test_a_grace_counts_as_its_reservation_asked_for_it_last() -> None:
    assert rules(withdrawn(reserved(two(30), 0)).claim({}, by=US)) == []
    assert rules(withdrawn(reserved(two(0), 30)).claim({}, by=US)) == [DEALLOCATED_UNDER_GHOST]


def test_a_grace_ends_with_the_last_reservation_or_by_force() -> None:
    assert rules(withdrawn(withdrawn(two(30), "other")).claim({}, by=US)) == []
    assert rules(withdrawn(two(30), by="somebody").claim({}, by=US)) == []


def test_the_last_reservation_ends_the_graces_that_earlier_ones_left_to_it() -> None:
    past = reserved(reserved(Past(), 30), 30, "other").claim(ALLOCATED).pod().gone()
    past = reserved(withdrawn(withdrawn(past), "other"), 0, "next")
    assert rules(past.claim({}, by=US)) == []


def test_who_stays_and_asks_for_as_long_answers_for_who_goes() -> None:
    past = reserved(reserved(Past(), 30), 30, "other").claim(ALLOCATED).pod().gone()
    assert rules(withdrawn(past).claim({}, by=US)) == [DEALLOCATED_UNDER_GHOST]
    past = reserved(reserved(Past(), 30), 30, "other").claim(ALLOCATED).pod().gone()
    assert rules(reserved(withdrawn(past), 0, "other").claim({}, by=US)) == []


def test_the_last_reservation_ends_no_grace_that_is_longer_than_its_own() -> None:
    past = reserved(withdrawn(withdrawn(two(30)), "other"), 0, "next")
    assert rules(past.claim({}, by=US)) == [DEALLOCATED_UNDER_GHOST]


def test_a_grace_that_was_asked_for_only_later_is_owed_to_nobody() -> None:
    past = reserved(Past(), 0, "other").claim(ALLOCATED).pod().gone()
    assert rules(withdrawn(reserved(past, 30)).claim({}, by=US)) == []


@pytest.mark.parametrize(
    ("state", "expected"),
    [("waiting", [DEALLOCATED_UNDER_GHOST]), ("terminated", [])],
)
def test_a_phase_that_podgc_gave_says_nothing_about_containers(
    state: str, expected: list[str]
) -> None:
    swept = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
    told = [{"name": "c", "state": {state: {}}}]
    past = reserved(Past(), 30).claim(ALLOCATED).pod(phase="Pending", containerStatuses=told)
    past = past.pod(phase="Failed", containerStatuses=told, conditions=[swept]).gone()
    assert rules(past.claim({}, by=US)) == expected


def test_removing_what_others_listed() -> None:
    past = Past().claim(held(THING, OWN)).claim(held(OWN), by=US)
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


def test_leaving_an_allocation_to_nobody() -> None:
    assert rules(Past().claim(ALLOCATED).claim(held(OWN), by=US).claim(ALLOCATED, by=US)) == [
        EMPTIED
    ]


def test_binding_a_pod_to_what_claimctl_has_deallocated() -> None:
    bound = {"phase": "Pending", "node": "n1"}
    assert rules(Past().claim(ALLOCATED).claim({}, by=US).pod(**bound)) == [STRANDED]
    assert rules(Past().claim(ALLOCATED).claim({}, by=KCM).pod(**bound)) == []


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
