"""The Grafana dashboard of the component monitoring: its panels and their queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parents[2] / "deploy/components/monitoring/dashboard.yaml"
DASHBOARD: dict[str, Any] = json.loads(yaml.safe_load(FILE.read_text())["data"]["claimctl.json"])
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
"""Also the rows, which have titles and no queries."""
EXPRESSIONS: list[str] = [target["expr"] for panel in PANELS for target in panel.get("targets", ())]
