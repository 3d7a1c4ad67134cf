"""The CustomResourceDefinitions with which real servers were recorded."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_CRDS = Path(__file__).with_name("crds")


def definitions() -> list[dict[str, Any]]:
    """New copies."""
    return [json.loads(text) for text in _texts()]


@cache
def _texts() -> tuple[str, ...]:
    """As JSON: many tests start a server, and YAML is slow to parse."""
    paths = sorted(_CRDS.glob("*.yaml"))
    return tuple(json.dumps(yaml.safe_load(path.read_text())) for path in paths)
