"""What ``make slow-scheduler`` says of settings that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimctl_demo.real_servers.programs import CannotStart, Programs
from labs.slow_scheduler import options
from labs.slow_scheduler.options import Options
from tests.support.variables import BadOption


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the programs of 1.34, wherever it is asked for."""
    found = Programs(Path(), (1, 34), "v1.34.9")
    monkeypatch.setattr(options, "programs_of", lambda version: found)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"GATES": "yes"}, "GATES: 'yes' is neither 0 nor 1"),
        ({"GATES": "1"}, "GATES=1: v1.34.9 has no PodGroups for claims; use 1.36"),
        ({"CAUSE": "load"}, "CAUSE: 'load' is neither rate nor volume"),
        ({"TRIES": "many"}, "TRIES: 'many' is no number"),
        ({"TRIES": "0"}, "TRIES: 0 is not between 1 and 100"),
        ({"BINDING": "-1"}, "BINDING: -1 is less than 0"),
    ],
)
def test_a_bad_setting_is_named_in_one_line(given: dict[str, str], says: str) -> None:
    with pytest.raises(BadOption) as raised:
        Options.given(given)
    assert str(raised.value) == says


def test_claimctl_waits_as_usual_unless_something_else_is_asked_for() -> None:
    assert Options.given({}).flags == ("--binding-seconds=60", "--slow-binding-seconds=600")
    off = Options.given({"BINDING": "0"})
    assert off.flags == ("--binding-seconds=0", "--slow-binding-seconds=0")


def test_without_the_programs_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    with pytest.raises(CannotStart, match="set KUBEBUILDER_ASSETS"):
        Options.given({})
