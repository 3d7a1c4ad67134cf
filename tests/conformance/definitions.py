"""The CustomResourceDefinitions of claimctl."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
_DEFINITIONS = Path(__file__).parents[2] / "crds"


def definitions() -> list[Object]:
    """The CustomResourceDefinitions of claimctl."""
    return [json.loads(text) for text in _definition_texts()]


@cache
def _definition_texts() -> tuple[str, ...]:
    """The CRDs as JSON: every sequence starts a server, and YAML is slow to parse."""
    paths = sorted(_DEFINITIONS.glob("*.claimctl.io.yaml"))
    return tuple(json.dumps(yaml.safe_load(path.read_text())) for path in paths)
