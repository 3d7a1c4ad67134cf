"""The package imports what it asks for, and nothing else."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

HOUSE = Path(__file__).parents[1]
IMPORTED = re.compile(r"^ *(?:import (?=\S+$)|from (?=\S+ import ))([a-z_0-9]+)", re.MULTILINE)
NAMES = {
    "aiohttp": {"aiohttp", "multidict", "yarl"},
    "common-expression-language": {"cel"},
    "grpcio": {"grpc"},
    "msgspec": {"msgspec"},
    "prometheus-client": {"prometheus_client"},
    "protobuf": {"google"},
    "pyyaml": {"yaml"},
    "trustme": {"trustme"},
}
"""What is imported of each distribution. Of aiohttp these are also what its own interface has."""


def test_every_import_is_of_a_dependency_and_each_dependency_is_imported() -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["nodes"]]
    distributions = {re.split(r"[<>=]", requirement)[0] for requirement in asked}
    texts = [path.read_text(encoding="utf-8") for path in (HOUSE / "kube_in_process").rglob("*.py")]
    imported = {name for text in texts for name in IMPORTED.findall(text)}
    others = imported - sys.stdlib_module_names - {"kube_in_process", "pytest"}
    assert distributions == NAMES.keys()
    assert others <= {name for names in NAMES.values() for name in names}
    assert all(names & others for names in NAMES.values())
