"""The requests, and the recorded answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

PATCH = "application/apply-patch+yaml"
NAMESPACE = "ns"
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request, and the name under which its answer is recorded."""

    case: str
    method: str
    path: str
    body: Any

    @property
    def headers(self) -> Mapping[str, str]:
        return {"content-type": PATCH if self.method == "PATCH" else "application/json"}


@lru_cache(maxsize=1)
def requests() -> tuple[RefusedRequest, ...]:
    """All requests, in the order of the file."""
    text = files(__package__).joinpath("cases.yaml").read_text(encoding="utf-8")
    return tuple(_request(case) for case in yaml.safe_load(text))


def _request(case: Mapping[str, Any]) -> RefusedRequest:
    method, _, path = case["request"].partition(" ")
    return RefusedRequest(case["case"], method, path, case["body"])


def recording_of(version: str) -> Path:
    """The file with the answers of a version, such as '1.36'."""
    return _HERE / f"v{version}.json"


def recorded(version: str) -> dict[str, str]:
    """The answers by the names of their cases; see ``shown``."""
    return dict(json.loads(recording_of(version).read_text(encoding="utf-8")))


def shown(status: int, body: Any) -> str:
    """An answer as it is compared: the status, and of a refusal also the message."""
    refused = isinstance(body, dict) and body.get("kind") == "Status"
    return f"{status} {body.get('message')}" if refused else str(status)
