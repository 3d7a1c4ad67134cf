"""The one line of progress: lines in a pipe, a live line on a terminal."""

from __future__ import annotations

import pytest

from claimctl.cli.progress import PAUSE_SECONDS, progress


def test_in_a_pipe_news_are_lines_and_numbers_come_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    time = 0.0
    with progress("waiting", lambda: time, live=False) as line:
        line.say("waits: a pod uses the claim")
        line.say("waits: a pod uses the claim")
        for done in range(40):
            line.count("Expanding, claims", done, 40)
            time += PAUSE_SECONDS / 10
        line.say("waits: for the controller")
    assert capsys.readouterr() == (
        "",
        "waits: a pod uses the claim\n"
        "Expanding, claims: 10 of 40\n"
        "Expanding, claims: 20 of 40\n"
        "Expanding, claims: 30 of 40\n"
        "waits: for the controller\n",
    )


def test_a_terminal_keeps_the_news_and_shows_how_much_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress("waiting for [the] controller", live=True) as line:
        line.say("reads pods [now]")
        line.count("Expanding, claims", 3, 40)
        print("the table", flush=True)
    out, err = capsys.readouterr()
    assert out == "the table\n"
    assert "reads pods [now]\n" in err
    assert "3 of 40" in err
    assert "waiting for [the] controller" in err
