"""Completion: the scripts are shell, and what they ask for is answered."""

from __future__ import annotations

import shutil
import subprocess

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
