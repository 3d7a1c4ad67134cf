from __future__ import annotations

import json
import platform
import socket
from pathlib import Path

import pytest
import yaml

from claimctl import __version__
from claimctl.cli.main import run
from claimctl.commands.doctor.version_work import lines
from claimctl.commands.doctor.versions import read_versions
from tests.support.claim_server import Server
from tests.support.diagnosing import deployed, elected

DOCUMENT = {
    "apiVersion": "cli.claimctl.io/v1alpha1",
    "kind": "Version",
    "claimctl": __version__,
    "python": platform.python_version(),
    "server": None,
}


def test_people_get_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", "--client"]) == 0
    line = f"claimctl {__version__} (Python {platform.python_version()})\n"
    assert capsys.readouterr() == (line, "")


def test_programs_get_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", "--client", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == DOCUMENT
    assert run(["version", "--client", "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == DOCUMENT


def test_without_a_kubeconfig_the_client_still_has_a_version(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(["version"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"claimctl {__version__} ")
    assert (err.startswith("no server: no kubeconfig"), err.count("\n")) == (True, 1)


def test_a_server_that_does_not_answer_is_an_error_after_the_clients_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert run(["version", "--server", f"http://127.0.0.1:{port}", "--request-timeout", "5s"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"claimctl {__version__} ")
    assert (err.startswith("error: GET /"), err.count("\n")) == (True, 1)


async def test_people_get_a_line_for_each_part() -> None:
    server = Server.started()
    elected(server)
    deployed(server, ready=2)
    text = "\n".join(lines("claimctl 1.2.3", await read_versions(server.client, server.clock)))
    assert "Kubernetes: 1.36, resource.k8s.io v1" in text
    assert f"CRDs:       claimctl.io/v1alpha1, of claimctl {__version__}" in text
    assert "Controller: registry.example.com/claimctl:0.1.0 (2 of 2 pods ready)" in text
    assert "they go together" in text
