"""One flag sets all waits; the flag of one wait goes before it."""

from __future__ import annotations

from typing import get_args

import pytest

from claimctl.cli.timing import (
    CONTROLLER_WAITS,
    WAITS,
    ControllerWaits,
    Timing,
    TimingOption,
    Waits,
)
from claimctl.controller.settings import Settings


def test_the_usual_waits_are_those_of_the_controller() -> None:
    usual = Settings(identity="me")
    assert {name: getattr(usual, name) for name in WAITS} == CONTROLLER_WAITS.seconds


@pytest.mark.parametrize("name", WAITS)
def test_a_slow_cluster_gets_three_times_as_long(name: str) -> None:
    slow = ControllerWaits(Timing.SLOW).seconds
    assert slow[name] == 3 * WAITS[name]
    Settings.checked(identity="me", **slow)


def test_a_wait_that_is_given_counts() -> None:
    slow = {"settle_seconds": 0.0, "binding_seconds": 180.0, "slow_binding_seconds": 1800.0}
    assert Waits(Timing.SLOW, 0.0).seconds == slow
    assert ControllerWaits(Timing.NORMAL, 1.0, 2.0, 3.0, 4.0).seconds == {
        "settle_seconds": 1.0,
        "binding_seconds": 2.0,
        "slow_binding_seconds": 3.0,
        "dead_reference_seconds": 4.0,
    }


@pytest.mark.parametrize("name", WAITS)
def test_the_help_names_the_flags_that_it_leaves_out(name: str) -> None:
    _, shown = get_args(TimingOption)
    flag = f"--{name.replace('_', '-')} ({WAITS[name]:g})"
    assert flag in shown.help
