"""Whether a release that is asked for has been had: told by versions, not by who saw it first."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.claims import Memories
from claimctl.wire.reservations import ClaimReservation
from tests.support.builders import CLAIM, NAMESPACE, claim, reservation
from tests.support.hand_clock import HandClock

KEY = ClaimKey(NAMESPACE, CLAIM)


def asks(version: str, uid: str = "uid-slice") -> ClaimReservation:
    made = reservation(annotations={"claimctl.io/release": uid})
    return replace(made, metadata=replace(made.metadata, resource_version=version))


@pytest.mark.parametrize(
    ("seen", "asked", "had"),
    [
        (["7", "-9"], "8", True),
        (["7", "-9", "10"], "8", True),
        (["-5", "7"], "8", False),
        (["7"], "8", False),
        (["-9", "10"], "11", False),
    ],
    ids=["freed", "and allocated anew", "of before", "never freed", "asked for anew"],
)
def test_a_release_was_had_if_the_claim_was_free_after_it_was_asked_for(
    seen: list[str], asked: str, had: bool
) -> None:
    memories = Memories(HandClock())
    memories.recorded.see(None, asks(asked))
    for each in seen:
        free = each.startswith("-")
        memories.see(claim(allocated=not free, version=each.removeprefix("-")))
    memories.recorded.see(asks(asked), asks("99"))
    assert memories.released_since_asked(KEY, asks("99").metadata) is had


def test_the_own_write_counts_before_any_watch_tells_of_it() -> None:
    memories = Memories(HandClock())
    memories.see(claim(version="7"))
    memories.recorded.see(None, asks("8"))
    memories.deallocated(claim(allocated=False, version="9").metadata)
    assert memories.released_since_asked(KEY, asks("8").metadata)


def test_a_request_for_another_claim_or_none_is_not_had() -> None:
    memories = Memories(HandClock())
    memories.see(claim(allocated=False, version="9"))
    assert not memories.released_since_asked(KEY, reservation().metadata)
    memories.recorded.see(None, asks("8", uid="uid-other"))
    assert not memories.released_since_asked(KEY, asks("8", uid="uid-other").metadata)
    memories.recorded.see(asks("8", uid="uid-other"), reservation())
    memories.recorded.see(reservation(), asks("12"))
    assert not memories.released_since_asked(KEY, asks("12").metadata)
