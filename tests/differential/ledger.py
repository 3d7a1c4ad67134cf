"""The kinds of difference that are allowed, and all kinds ever seen with their states."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

ALLOWED = Path(__file__).parent / "allowed.yaml"
SEEN = Path(__file__).parent / "seen.yaml"
ENDS = ("fixed", "refused", "allowed", "open")
HEAD = "# Every kind of difference ever seen, and how it ended: fixed, refused, allowed, or open.\n"
LIMIT = 0.03
"""The largest share of allowed kinds among all kinds ever seen."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """An allowed kind. ``kind`` is a regular expression for the whole kind."""

    kind: str
    reason: str

    def covers(self, kind: str) -> bool:
        return re.fullmatch(self.kind, kind) is not None


def allowances(path: Path = ALLOWED) -> list[Allowance]:
    return [Allowance(**each) for each in yaml.safe_load(path.read_text()) or []]


def allowed(kind: str, among: Iterable[Allowance]) -> bool:
    return any(each.covers(kind) for each in among)


def seen(path: Path = SEEN) -> dict[str, str]:
    """The state of each kind: fixed, refused (as not emulated), allowed, open."""
    content = yaml.safe_load(path.read_text()) or []
    return {str(each["kind"]): str(each["ended"]) for each in content}


def add_seen(kinds: Iterable[str], among: Iterable[Allowance], path: Path = SEEN) -> None:
    """Add kinds to the file. New ones are open until someone edits their state."""
    rules = list(among)
    content = seen(path)
    for kind in kinds:
        content[kind] = "allowed" if allowed(kind, rules) else "open"
    listed = [{"kind": kind, "ended": content[kind]} for kind in sorted(content)]
    text = yaml.safe_dump(listed, sort_keys=False, width=1000, allow_unicode=True)
    path.write_text(f"{HEAD}{text}")


def summary(content: dict[str, str]) -> str:
    ended = Counter(content.values())
    told = ", ".join(f"{each} {ended[each]}" for each in ENDS)
    share = ended["allowed"] / max(len(content), 1)
    return f"kinds of difference ever seen: {len(content)} ({told}; allowed are {share:.1%})"
