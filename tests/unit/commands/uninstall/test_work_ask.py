"""``claimctl uninstall run`` asks before it takes claimctl away."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from claimctl.cli import main
from claimctl.commands.uninstall import work

UNINSTALL = ["uninstall", "run"]


class TypedAnswer(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch) -> list[work.Mode]:
    """The modes in which the command is carried out; it has 8 objects to change, 20 to delete."""
    modes: list[work.Mode] = []

    def record(*arguments: object) -> int:
        *_, mode = arguments
        assert isinstance(mode, work.Mode)
        modes.append(mode)
        return 0

    monkeypatch.setattr(work, "in_session", lambda *_: (8, 20))
    monkeypatch.setattr(
        work, "connection_of", lambda _: SimpleNamespace(server="https://prod:6443")
    )
    monkeypatch.setattr(work, "uninstall", record)
    return modes


@pytest.mark.parametrize(("typed", "code", "times"), [("y\n", 0, 1), ("n\n", 1, 0), ("\n", 1, 0)])
def test_on_a_terminal_it_asks_with_the_server_and_the_counts(
    typed: str,
    code: int,
    times: int,
    carried_out: list[work.Mode],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", TypedAnswer(typed))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main.run(UNINSTALL) == code
    assert len(carried_out) == times
    asked = capsys.readouterr().err
    for words in ("8 objects of all namespaces", "20 objects of claimctl", "at https://prod:6443"):
        assert words in asked


def test_where_nobody_can_be_asked_nothing_is_done_without_yes(
    carried_out: list[work.Mode],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main.run(UNINSTALL) == 2
    assert capsys.readouterr().err.startswith("error: uninstall run: --yes is needed where ")
    assert carried_out == []
    assert main.run([*UNINSTALL, "--yes"]) == 0
    assert [mode.delete for mode in carried_out] == [True]
