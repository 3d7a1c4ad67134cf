"""Pods that vanished while their containers may have been running, as the witness finds them."""

from __future__ import annotations

import pytest

from claimctl_witness.witness import DEALLOCATED_UNDER_GHOST
from claimctl_witness_tests.past import ALLOCATED, US, Past, reserved, rules, withdrawn


def test_deallocating_within_the_grace_of_a_vanished_pod() -> None:
    past = reserved(Past(), 30).claim(ALLOCATED).pod().gone().claim({}, by=US)
    assert rules(past) == [DEALLOCATED_UNDER_GHOST]


def test_a_grace_that_is_over_and_a_pod_that_was_done_are_no_ghosts() -> None:
    assert rules(reserved(Past(), 0).claim(ALLOCATED).pod().gone().claim({}, by=US)) == []
    done = reserved(Past(), 30).claim(ALLOCATED).pod().pod(phase="Succeeded").gone()
    assert rules(done.claim({}, by=US)) == []


@pytest.mark.parametrize(
    ("statement", "accused"),
    [
        ("pod/train-0@99", []),
        ("node/n1@99", []),
        ("other,pod/*@99", []),
        ("pod/train-0@1", [DEALLOCATED_UNDER_GHOST]),
        ("pod/train-1@99", [DEALLOCATED_UNDER_GHOST]),
    ],
)
def test_a_statement_ends_the_wait_for_pods_that_vanished_before_it(
    statement: str, accused: list[str]
) -> None:
    past = reserved(Past(), 30).claim(ALLOCATED).pod().gone()
    past = reserved(past, 30, annotations={"claimctl.io/ended-pods": statement})
    assert rules(past.claim({}, by=US)) == accused


@pytest.mark.parametrize(("late", "accused"), [(1.0, [DEALLOCATED_UNDER_GHOST]), (2.0, [])])
def test_a_history_that_may_be_late_shows_a_grace_only_to_within_that_time(
    late: float, accused: list[str]
) -> None:
    past = reserved(Past(), 2).claim(ALLOCATED).pod().gone().claim({}, by=US)
    past.witness.late = late
    assert rules(past) == accused


def test_a_reservation_that_a_restore_of_etcd_took_back_asks_for_nothing() -> None:
    past = reserved(reserved(Past(), 30, uid="later"), 0, uid="earlier")
    assert rules(past.claim(ALLOCATED).pod().gone().claim({}, by=US)) == []


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
