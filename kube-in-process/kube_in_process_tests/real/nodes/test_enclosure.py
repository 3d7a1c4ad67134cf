"""Runs inside namespaces: one at a time, and nothing of a killed one stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from kube_in_process.real.nodes import enclosure
from kube_in_process.real.servers.programs import CannotStart


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(enclosure, "_LOCK", tmp_path / "locks" / "nodes")
    monkeypatch.setattr(enclosure, "_CGROUPS", tmp_path)
    monkeypatch.setattr(enclosure, "_LOOKS", 1)
    monkeypatch.setattr(enclosure, "_LOOK_SECONDS", 0.0)
    return tmp_path


def test_a_second_run_is_refused_while_the_first_one_goes_on(machine: Path) -> None:
    with (
        enclosure._alone(),
        pytest.raises(CannotStart, match="another run on this machine uses nodes"),
    ):
        enclosure.enclosed("nothing", ())
    with enclosure._alone():
        """The first one has ended."""


def test_the_cgroups_of_a_killed_run_are_removed(machine: Path) -> None:
    for folder in ("", "cpu", "memory"):
        (machine / folder / enclosure.CGROUP / "pod" / "container").mkdir(parents=True)
    (machine / "memory" / "another").mkdir()
    enclosure.remove_leftovers()
    assert sorted(path.name for path in machine.rglob("*")) == ["another", "cpu", "memory"]


def test_cgroups_in_which_processes_still_end_do_not_stop_a_run(machine: Path) -> None:
    busy = machine / "cpu" / enclosure.CGROUP / "pod"
    busy.mkdir(parents=True)
    (busy / "tasks").touch()
    enclosure.remove_leftovers()
    assert busy.exists()


def test_a_machine_that_makes_no_namespaces_is_told_in_one_line(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ("sh", "-c", "echo 'unshare failed: Operation not permitted' >&2; exit 1")
    monkeypatch.setattr(enclosure, "_UNSHARE", refused)
    with pytest.raises(CannotStart) as caught:
        enclosure.enclosed("nothing", ())
    assert str(caught.value) == (
        "namespaces cannot be made here: unshare failed: Operation not permitted"
    )
