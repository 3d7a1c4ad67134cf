"""Placeholders of the recordings: bound where they first appear in an answer, used afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(r"<(?:(?:uid|rv|continue|token|gen|hash):\d+|time|age|hash|host:port)>")
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
_PATTERNS = {
    "uid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "rv": r"\d+",
    "continue": r"[A-Za-z0-9_-]+",
    "token": r"[A-Za-z0-9_.-]+",
    "gen": r"[bcdfghjklmnpqrstvwxz2456789]{5}",
    "hash": r"[A-Za-z0-9]+",
    "time": _TIME,
    "age": r"\d+[smhd]\d*[smhd]?|<unknown>",
    "host": r"[^/\s\"]+",
}


@dataclass
class Bindings:
    """What each numbered placeholder stands for in this replay."""

    values: dict[str, str] = field(default_factory=dict)

    def fill(self, value: Any) -> Any:
        """A recorded value with every bound placeholder replaced."""
        if isinstance(value, str):
            return _TOKEN.sub(lambda m: self.values.get(m.group(0), m.group(0)), value)
        if isinstance(value, dict):
            return {self.fill(key): self.fill(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.fill(inner) for inner in value]
        return value

    def match(self, recorded: str, actual: str) -> bool:
        """Whether a text is the recorded one; binds what was not bound yet."""
        tokens = _TOKEN.findall(recorded)
        if not tokens:
            return recorded == actual
        pattern, names = self._pattern(recorded)
        matched = re.fullmatch(pattern, actual, re.DOTALL)
        if matched is None:
            return False
        for name, group in names.items():
            self.values[name] = matched.group(group)
        return True

    def _pattern(self, recorded: str) -> tuple[str, dict[str, str]]:
        names: dict[str, str] = {}
        parts: list[str] = []
        position = 0
        for token in _TOKEN.finditer(recorded):
            parts.append(re.escape(recorded[position : token.start()]))
            parts.append(self._part(token.group(0), names))
            position = token.end()
        parts.append(re.escape(recorded[position:]))
        return "".join(parts), names

    def _part(self, token: str, names: dict[str, str]) -> str:
        if token in self.values:
            return re.escape(self.values[token])
        if token in names:
            return f"(?P={names[token]})"
        kind = token[1:-1].partition(":")[0]
        if ":" not in token or kind == "host":
            return f"(?:{_PATTERNS[kind]})"
        names[token] = f"p{len(names)}"
        return f"(?P<{names[token]}>{_PATTERNS[kind]})"


def is_version(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"<rv:\d+>", value) is not None
