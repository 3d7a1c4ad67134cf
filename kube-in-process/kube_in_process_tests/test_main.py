"""``python -m kube_in_process`` serves a cluster until a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from kube_in_process.__main__ import main
from kube_in_process.serving.kubeconfig import read_kubeconfig
from kube_in_process.serving.tls import client_context

from kube_in_process_tests.test_testing import DEFINITION


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    (tmp_path / "things.yaml").write_text(DEFINITION)
    command = [sys.executable, "-m", "kube_in_process", "--kubeconfig", str(file), "--nodes", "1"]
    command += ["--crds", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        access = read_kubeconfig(file)
        assert line == f"cluster at {access.url}, context embedded in kubeconfig {file}\n"
        with urlopen(f"{access.url}/apis/x.io/v1/things", context=client_context(access)) as answer:
            assert json.load(answer)["kind"] == "ThingList"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert not file.exists()


def test_a_folder_of_definitions_that_is_wrong_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--kubeconfig", str(tmp_path / "kubeconfig"), "--crds"]
    assert main([*given, str(tmp_path / "nowhere")]) == 2
    (tmp_path / "bad.yaml").write_text("a: [")
    assert main([*given, str(tmp_path)]) == 2
    (tmp_path / "bad.yaml").write_text(DEFINITION.replace("Namespaced", "Nowhere"))
    assert main([*given, str(tmp_path)]) == 2
    nowhere, unreadable, refused = capsys.readouterr().err.splitlines()
    assert nowhere == f"kube_in_process: --crds: {tmp_path}/nowhere is no folder"
    assert unreadable.startswith(f"kube_in_process: --crds: {tmp_path}/bad.yaml is no YAML: ")
    assert refused.startswith("kube_in_process: --crds: CustomResourceDefinition things.x.io: ")


def test_a_file_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--kubeconfig", str(tmp_path / "no" / "where")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kube_in_process: --kubeconfig: cannot write")
