"""The kinds of difference that are allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

ALLOWED = Path(__file__).parent / "allowed.yaml"
LIMIT = 10
"""The largest number of allowed kinds."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """An allowed kind. ``kind`` is a regular expression for the whole kind."""

    kind: str
    reason: str

    def covers(self, kind: str) -> bool:
        return re.fullmatch(self.kind, kind) is not None


def allowances(path: Path = ALLOWED) -> list[Allowance]:
    return [Allowance(**entry) for entry in yaml.safe_load(path.read_text()) or []]


def allowed(kind: str, among: Iterable[Allowance]) -> bool:
    return any(allowance.covers(kind) for allowance in among)
