"""The alert rules of the component monitoring, and promtool and prometheus if there are any."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy/components/monitoring/prometheusrule.yaml"
PAGES = ROOT / "docs/runbooks/alerts"
SPEC: dict[str, Any] = yaml.safe_load(FILE.read_text())["spec"]
PROMTOOL = os.environ.get("PROMTOOL") or shutil.which("promtool") or ""
PROMETHEUS = os.environ.get("PROMETHEUS") or shutil.which("prometheus") or ""
needs_promtool = pytest.mark.skipif(not PROMTOOL, reason="there is no promtool on this machine")
needs_prometheus = pytest.mark.skipif(
    not PROMETHEUS, reason="there is no prometheus on this machine"
)


@dataclass(frozen=True, slots=True)
class Alert:
    name: str
    expression: str
    annotations: dict[str, str]


ALERTS = [
    Alert(rule["alert"], rule["expr"], rule["annotations"])
    for group in SPEC["groups"]
    for rule in group["rules"]
]


def write_rules(folder: Path) -> Path:
    """The rules as a file for promtool and Prometheus, without the object around them."""
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump(SPEC))
    return file
