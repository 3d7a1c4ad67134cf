from __future__ import annotations

import json
import platform

import pytest
import yaml

from claimctl import __version__
from claimctl.cli.main import run

DOCUMENT = {
    "apiVersion": "cli.claimctl.io/v1alpha1",
    "kind": "Version",
    "claimctl": __version__,
    "python": platform.python_version(),
}


def test_people_get_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == 0
    line = f"claimctl {__version__} (Python {platform.python_version()})\n"
    assert capsys.readouterr() == (line, "")


def test_programs_get_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == DOCUMENT
    assert run(["version", "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == DOCUMENT
