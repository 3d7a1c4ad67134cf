"""Which references claimctl may remove from a claim, as the witness judges it."""

from __future__ import annotations

from claimctl.audit.witness import REMOVED_FOREIGN
from claimctl.embedded.storage.store import Address, Author
from tests.unit.audit.past import ALLOCATED, OWN, US, Past, held, rules

THING = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "x"}


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
