"""``python -m kube_in_process`` serves a cluster until a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kube_in_process.__main__ import main


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "kube_in_process", "--kubeconfig", str(file), "--nodes", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        served = yaml.safe_load(file.read_text())["clusters"][0]["cluster"]["server"]
        assert told == f"cluster at {served}, context embedded in kubeconfig {file}\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert not file.exists()


def test_a_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--kubeconfig", str(tmp_path / "no" / "where")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kube_in_process: --kubeconfig: cannot write")
