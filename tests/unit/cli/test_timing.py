"""One flag sets all waits; the flag of one wait goes before it."""

from __future__ import annotations

import pytest

from claimctl.cli.timing import WAITS, Timing, waits
from claimctl.controller.settings import Settings

NAMES = tuple(WAITS[Timing.NORMAL])


def test_the_usual_waits_are_those_of_the_controller() -> None:
    usual = Settings(identity="me")
    assert {name: getattr(usual, name) for name in NAMES} == WAITS[Timing.NORMAL]


@pytest.mark.parametrize("name", NAMES)
def test_a_slow_cluster_gets_three_times_as_long(name: str) -> None:
    assert WAITS[Timing.SLOW][name] == 3 * WAITS[Timing.NORMAL][name]
    Settings.checked(identity="me", **WAITS[Timing.SLOW])


def test_a_wait_that_is_given_counts() -> None:
    assert waits(Timing.SLOW, settle_seconds=0.0, binding_seconds=None) == {
        "settle_seconds": 0.0,
        "binding_seconds": 180.0,
    }
