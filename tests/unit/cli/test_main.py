"""The frame of the command line: help, laziness, usage errors, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from claimctl import __version__
from claimctl.cli.color import VARIABLE as COLOR_VARIABLE
from claimctl.cli.errors import DEBUG_VARIABLE, ExitCode
from claimctl.cli.main import load, run
from claimctl.cli.registry import BY_NAME, COMMANDS, FAMILIES, Group

MOST_WORDS = 16
"""At most so many commands can be surveyed at the top level."""


def in_a_process(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60
    )


def test_no_arguments_mean_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == ExitCode.OK
    bare = capsys.readouterr()
    assert run(["-h"]) == ExitCode.OK
    assert capsys.readouterr() == bare
    assert bare.err == ""


def test_help_lists_the_commands_in_four_groups(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run(["--help"])
    out = capsys.readouterr().out
    places = [out.index(f"\n{group}:\n") for group in Group]
    assert places == sorted(places)
    assert len({entry.name.split()[0] for entry in COMMANDS}) <= MOST_WORDS
    listed = out[places[0] :].partition("Connection flags")[0].split()
    assert {word for entry in COMMANDS for word in entry.name.split()} <= {
        word.strip(",.") for word in listed
    }


def test_help_lists_the_connection_flags_once(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--help"])
    assert "-s, --server URL" in capsys.readouterr().out
    run(["get", "--help"])
    out = capsys.readouterr().out
    assert "--server" not in out
    assert "see `claimctl --help`" in " ".join(out.split())


@pytest.mark.parametrize("word", FAMILIES)
def test_a_first_word_alone_lists_its_commands(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([word]) == ExitCode.OK
    out = capsys.readouterr().out
    assert [entry.help in out for entry in COMMANDS if entry.name.startswith(f"{word} ")] == [
        True,
        True,
        True,
    ]


@pytest.mark.parametrize("name", BY_NAME)
def test_every_command_in_the_table_is_there_and_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load(BY_NAME[name]).help
    assert run([*name.split(), "--help"]) == ExitCode.OK
    assert capsys.readouterr().out.startswith(f"Usage: claimctl {name} ")


def test_the_plugin_speaks_as_kubectl_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", "--help"], "kubectl claim") == ExitCode.OK
    assert capsys.readouterr().out.startswith("Usage: kubectl claim version ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["explan"], "No such command 'explan'. Did you mean 'explain'? (see 'claimctl --help')"),
        (["uninstall-prepare"], "'uninstall-prepare'. Did you mean 'uninstall prepare'?"),
        (["downgrade-status"], "'downgrade-status'. Did you mean 'downgrade status'?"),
        (["uninstall", "now"], "No such command 'now' (see 'claimctl uninstall --help')"),
        (["get", "-v6"], "-v6: there are no levels; --debug prints tracebacks of errors"),
        (["-n", "ml", "get"], "-n: put it after the command, as in `claimctl get -n ...`"),
        (["get", "-n", "ml", "-A"], "--all-namespaces (-A) and --namespace (-n) exclude"),
        (["--nonsense"], "No such option: --nonsense (see 'claimctl --help')"),
        (["version", "extra"], "Got unexpected extra argument(s) (extra)"),
        (["version", "-o", "xml"], "'xml' is not one of table, wide, json, yaml"),
        (["version", "-o"], "Option '-o' requires an argument"),
        (["completion"], "Missing argument"),
        (
            ["completion", "csh"],
            "'csh' is not one of 'bash', 'zsh', 'fish', 'powershell'",
        ),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert line in captured.err


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        (["--version"], "claimctl "),
        (["help"], "Usage: claimctl "),
        (["help", "version"], "Usage: claimctl version "),
        (["downgrade-prepare", "--help"], "Usage: claimctl downgrade prepare "),
        (["help", "downgrade-prepare"], "Usage: claimctl downgrade prepare "),
        (["version", "--client", "--debug"], "claimctl "),
    ],
)
def test_common_words_are_taken(
    arguments: list[str],
    begins: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, "")
    assert run(arguments) == ExitCode.OK
    assert capsys.readouterr().out.startswith(begins)


def test_debug_prints_the_traceback_of_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, "")
    assert run(["--debug", "version", "-o", "xml"]) == ExitCode.USAGE
    assert "Traceback (most recent call last):" in capsys.readouterr().err


def test_it_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "claimctl", "version", "--client"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"claimctl {__version__} ")


def test_a_reader_that_goes_away_makes_no_noise() -> None:
    done = subprocess.run(
        f"{sys.executable} -m claimctl --help | true",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("redirection", "line"),
    [
        (">&-", "error: cannot write the output: stdout is closed\n"),
        (">/dev/full", "error: cannot write the output: No space left on device\n"),
        (">&- 2>&-", ""),
    ],
)
def test_an_output_that_takes_nothing_is_one_line(redirection: str, line: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m claimctl version --client {redirection}",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (1, line)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--color", "always", "version", "--client"],
        ["version", "--client", "--color", "always"],
        ["version", "--client", "--color=always"],
    ],
)
def test_color_may_stand_before_and_after_the_command(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COLOR_VARIABLE, "auto")
    assert run(arguments) == ExitCode.OK
    assert os.environ[COLOR_VARIABLE] == "always"


def test_an_unknown_color_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["get", "--color", "red"]) == ExitCode.USAGE
    assert "'red' is not one of 'auto', 'always', 'never'" in capsys.readouterr().err
