"""The flags of the labs: a bad one is one line, and nothing starts."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from kube_in_process_tests.real.scripts import folder_of

from labs.__main__ import LABS, main
from labs.slow_scheduler import lab as slow_scheduler
from labs.torture import lab as torture
from labs.torture_real import lab as torture_real

REAL = ("slow-scheduler", "switching", "torture-real")
"""The labs that need real servers."""


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder per version, as KUBEBUILDER_ASSETS may name it."""
    for version in ("1.34", "1.36"):
        (tmp_path / version).mkdir()
        folder_of(tmp_path / version, version=f"Kubernetes v{version}.2")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))


def error_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a lab says as it refuses to start."""
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    return str(line)


@pytest.mark.parametrize("name", LABS)
def test_each_lab_explains_its_flags(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main([name, "--help"])
    assert raised.value.code == 0
    assert f"usage: python -m labs {name} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("torture --budget long", "torture: --budget: 'long' is no number"),
        ("torture --shard 3/2", "torture: --shard: '3/2' is not I/N with 1 <= I <= N"),
        ("torture --workers 0", "torture: --workers: 0 is not >= 1"),
        ("torture-real --gates yes", "torture-real: --gates: 'yes' is neither 0 nor 1"),
        ("torture-real --namespaces 0", "torture-real: --namespaces: 0 is not >= 1"),
        ("slow-scheduler --tries 0", "slow-scheduler: --tries: 0 is not between 1 and 100"),
        ("slow-scheduler --binding -1", "slow-scheduler: --binding: -1 is not >= 0"),
        ("switching --pods 300", "switching: --pods: 300 is not between 2 and 250"),
        ("histories --compare a --seeds 0", "histories: --seeds: 0 is not >= 1"),
        ("kinds --retries 3", "kinds: unrecognized arguments: --retries 3"),
    ],
)
def test_a_bad_flag_is_named(arguments: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(arguments.replace(" -1", "=-1").split(), capsys) == says


@pytest.mark.parametrize("name", REAL)
def test_without_real_servers_a_lab_is_skipped(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    assert error_of([name], capsys).startswith(f"{name}: skipped: set KUBEBUILDER_ASSETS to")


@pytest.mark.usefixtures("assets")
def test_the_flags_of_a_lab_on_real_servers() -> None:
    flags = "--version 1.36 --gates 1 --budget 900 --seed 7 --namespaces 3"
    options = torture_real.parser().read(flags.split(), torture_real.TortureRealOptions)
    assert options.programs.version == (1, 36)
    assert (options.budget, options.seed, options.namespaces) == (900.0, 7, 3)
    assert options.label == "Kubernetes v1.36.2 with PodGroups"


@pytest.mark.usefixtures("assets")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("torture-real --version 1.34 --gates 1", "--gates: v1.34.2 has no PodGroups for claims"),
        ("switching --version 1.34", "--gates: v1.34.2 has no PodGroups for claims"),
        ("slow-scheduler --version 1.31", "slow-scheduler: --version: "),
    ],
)
def test_a_version_that_cannot_play_is_named(
    arguments: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in error_of(arguments.split(), capsys)


@pytest.mark.usefixtures("assets")
def test_claimctl_waits_as_usual_unless_something_else_is_asked_for() -> None:
    def flags(*arguments: str) -> tuple[str, ...]:
        given = ("--version", "1.36", *arguments)
        options = slow_scheduler.parser().read(given, slow_scheduler.SlowSchedulerOptions)
        return options.flags_of_claimctl

    assert flags() == ("--binding-seconds=60", "--slow-binding-seconds=600")
    assert flags("--binding=0") == ("--binding-seconds=0", "--slow-binding-seconds=0")


def test_a_shard_plays_its_own_seeds() -> None:
    given = torture.parser().parse_args(["--seed", "100", "--shard", "2/3"])
    assert list(islice(torture.seeds_of(given), 3)) == [101, 104, 107]
