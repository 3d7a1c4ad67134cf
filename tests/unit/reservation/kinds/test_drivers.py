"""The data of drivers and habits, beside the habits that the drivers of test clusters have."""

from __future__ import annotations

import pytest
from kube_in_process.habits.registry import HABITS

from claimctl.reservation.kinds.drivers import (
    HIDES_USED_DEVICES,
    WANTS_ONE_POD,
    DriverHabits,
    known_drivers,
    known_habits,
)


def test_the_habits_have_the_names_that_drivers_of_test_clusters_know() -> None:
    assert set(known_habits()) == set(HABITS)


@pytest.mark.parametrize("driver", known_drivers().values(), ids=lambda driver: driver.driver)
def test_a_driver_says_what_was_found_where(driver: DriverHabits) -> None:
    assert set(driver.habits) <= set(known_habits())
    assert driver.how in ("seen", "read")
    assert driver.name
    assert driver.versions
    assert driver.observed
    assert driver.source


@pytest.mark.parametrize("name", known_habits())
def test_a_habit_says_what_the_driver_and_what_claimctl_does(name: str) -> None:
    habit = known_habits()[name]
    assert habit.does
    assert habit.claimctl
    assert "{" not in habit.unless_known.replace("{driver}", "")


def test_what_claimctl_acts_on() -> None:
    wanting = {name for name, driver in known_drivers().items() if driver.wants_one_pod}
    assert wanting == {
        "dra.net",
        "networkdriver.cilium.io",
        "sriovnetwork.k8snetworkplumbingwg.io",
    }
    assert [it.driver for it in known_drivers().values() if it.hides_used_devices] == ["dra.net"]
    assert {WANTS_ONE_POD, HIDES_USED_DEVICES} <= set(known_habits())
