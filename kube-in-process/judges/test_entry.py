"""``python -m judges``."""

from __future__ import annotations

import pytest

from judges.__main__ import PROGRAMS, main


def test_all_programs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_explains_its_flags(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main([name, "--help"])
    assert raised.value.code == 0
    assert f"usage: python -m judges {name} " in capsys.readouterr().out


def error_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a program says as it refuses to start."""
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    return str(line)


def test_a_bad_flag_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    told = error_of(["fuzz", "--retries", "3"], capsys)
    assert told == "fuzz: unrecognized arguments: --retries 3"


@pytest.mark.parametrize("name", ["differential", "scheduling-record", "stories", "stories-record"])
def test_without_real_servers_a_program_is_skipped(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    assert error_of([name], capsys).startswith(f"{name}: skipped: set KUBEBUILDER_ASSETS to")


def test_a_program_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nope"]) == 2
    told = capsys.readouterr().err
    assert told == "judges: no program is named 'nope': `python -m judges` lists them\n"
