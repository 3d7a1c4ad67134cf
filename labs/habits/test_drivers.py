"""The drivers of the matrix, and what a file may say of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kube_in_process.habits.presence import Slow
from kube_in_process.habits.publishing import FewerDevices
from kube_in_process.habits.registry import HABITS

from labs.__main__ import main
from labs.habits.drivers import BadDescription, described, drivers_of_the_matrix


def test_each_habit_is_that_of_a_driver() -> None:
    assert [*dict.fromkeys(each.habits[0].name for each in drivers_of_the_matrix())] == list(HABITS)


def test_a_driver_that_claimctl_knows_has_what_claimctl_ships_for_it() -> None:
    for driver in drivers_of_the_matrix():
        names = {each.name for each in driver.habits}
        assert driver.is_known is (driver.name != "new.example.com")
        assert not driver.is_known or "wants-one-pod" in names


def test_a_description_may_give_values() -> None:
    slow = {"habit": "slow", "prepare_seconds": 30}
    fewer = {"habit": "fewer-devices", "gone": ["dev-0", "dev-1"]}
    found = described({"name": "dra.example.com", "habits": ["away", slow, fewer]})
    assert found.name == "dra.example.com"
    assert found.habits[1:] == (Slow(prepare_seconds=30.0), FewerDevices(gone=("dev-0", "dev-1")))


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        (None, "a mapping with the keys name and habits was expected"),
        ({"name": "d", "habit": ["slow"]}, "habit: the keys are name and habits"),
        ({"habits": ["slow"]}, "name: the name of the driver was expected"),
        ({"name": "d"}, "habits: a list with at least one habit was expected"),
        ({"name": "d", "habits": []}, "habits: a list with at least one habit was expected"),
        ({"name": "d", "habits": [1]}, "habits[0]: the name of a habit was expected"),
        ({"name": "d", "habits": ["slo"]}, "habits[0]: no habit is called 'slo'; there are wants"),
        ({"name": "d", "habits": ["slow", "slow"]}, "habits: slow is there twice"),
        (
            {"name": "d", "habits": ["away", {"habit": "slow", "seconds": 3}]},
            "habits[1]: slow has no value 'seconds'; its values are prepare_seconds",
        ),
        (
            {"name": "d", "habits": [{"habit": "away", "seconds": 3}]},
            "habits[0]: away has no value 'seconds'; it has no values",
        ),
        (
            {"name": "d", "habits": [{"habit": "slow", "prepare_seconds": "long"}]},
            "habits[0]: slow: Expected `float`, got `str` - at `$.prepare_seconds`",
        ),
    ],
)
def test_a_bad_description_is_one_line(plain: Any, says: str) -> None:
    with pytest.raises(BadDescription) as raised:
        described(plain)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file or directory"),
        ("name: [", ", line 1: this is no YAML"),
        ("name: d", ": habits: a list with at least one habit was expected"),
    ],
)
def test_a_bad_file_is_named(
    text: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "driver.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SystemExit) as raised:
        main(["habits", "--driver", str(file)])
    assert raised.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"habits: --driver: {file}")
    assert says in line
