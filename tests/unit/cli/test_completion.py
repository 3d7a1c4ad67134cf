"""Completion: the scripts are shell, and what they ask for is answered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from claimctl.cli.completion import VARIABLE
from claimctl.cli.main import run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_claimctl(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{VARIABLE}=complete_{shell}" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=60)


def test_the_script_for_powershell_asks_claimctl(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "powershell"]) == 0
    script = capsys.readouterr().out
    assert f'$Env:{VARIABLE} = "complete_powershell"' in script
    assert "Register-ArgumentCompleter" in script


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("claimctl down", ["downgrade"]),
        ("claimctl downgrade s", ["status"]),
        ("claimctl completion z", ["zsh"]),
        ("claimctl version --out", ["--output"]),
        ("claimctl version --output j", ["json"]),
    ],
)
def test_commands_options_and_values_are_completed(words: str, answer: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "claimctl"],
        env={
            **os.environ,
            VARIABLE: "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", answer)
