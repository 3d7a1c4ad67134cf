"""Replaces values in a real server's answers by the placeholders of recordings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_VERSION_IN_TEXT = re.compile(
    r"((?:ResourceVersion in object meta: |current: |ResourceVersion in record \())(\d+)"
)
_KEY = re.compile(r"Key: /(?!registry/)")
_HASH = re.compile(r"(?<=hash=)[0-9A-F]{64,}")
_AGE = re.compile(r"(?:\d+[smhdy])+|<unknown>|<invalid>")
_SUFFIX = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
_LONGEST_BASE = 58
"""How many letters of a generateName a server keeps."""
_LAYOUT = "2006-01-02T15:04:05Z"
"""Go's layout of a time, which is part of messages."""
_ADDRESS = "127.0.0.1:6443"
"""The address that discovery tells on the embedded server; another server has another one."""
_AGES = ("Age", "Last Seen", "First Seen", "Duration")


@dataclass
class Encoder:
    """Assigns a placeholder to every value that the server generated in one sequence.

    ``chosen`` is the text of all requests of the sequence: values in it stay literal.
    """

    chosen: str
    values: dict[str, str] = field(default_factory=dict)
    """The value of each placeholder."""
    _names: dict[str, str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _generated: dict[str, str] = field(default_factory=dict)
    _base: str = ""
    """The generateName of the last request."""
    _columns: list[Any] = field(default_factory=list)
    """The columns of the last table. In a stream only the first event has them."""

    def request(self, value: Any) -> Any:
        """A request with placeholders for values of earlier answers."""
        body = value.get("body") if isinstance(value, dict) else None
        meta = body.get("metadata") if isinstance(body, dict) else None
        base = meta.get("generateName") if isinstance(meta, dict) else None
        self._base = base if isinstance(base, str) else ""
        return self._requested(value)

    def _requested(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._text(key): self._requested(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._requested(inner) for inner in value]
        if not isinstance(value, str):
            return value
        return self._names.get(f"rv {value}") or self._path(self._text(value))

    def _path(self, text: str) -> str:
        """A path with placeholders for versions and continue tokens in its query."""
        if not text.startswith("/"):
            return text
        for name, value in self.values.items():
            if name.startswith(("<rv:", "<continue:", "<token:")):
                text = re.sub(rf"(?<==){re.escape(value)}(?=&|$)", name, text)
        return text

    def answer(self, value: Any) -> Any:
        """An answer with placeholders; new ones are numbered in order."""
        self._learn(value)
        return self._encoded(value, "")

    def _learn(self, value: Any) -> None:
        if isinstance(value, list):
            for inner in value:
                self._learn(inner)
        if not isinstance(value, dict):
            return
        if value.get("kind") == "Status" and self._base:
            name = (value.get("details") or {}).get("name")
            if isinstance(name, str) and name.startswith(self._base[:_LONGEST_BASE]):
                self._learn_generated(name)
        meta = value.get("metadata")
        if isinstance(meta, dict):
            self._learn_metadata(meta)
        if value.get("kind") == "TokenRequest":
            token = (value.get("status") or {}).get("token")
            if token:
                self._name("token", token)
        for inner in value.values():
            self._learn(inner)

    def _learn_metadata(self, meta: Mapping[str, Any]) -> None:
        uid, version = meta.get("uid"), meta.get("resourceVersion")
        if isinstance(uid, str) and _UID.fullmatch(uid) and uid not in self.chosen:
            self._name("uid", uid)
        if isinstance(version, str) and version.isdigit() and version != "0":
            self._name("rv", version)
        if meta.get("continue"):
            self._name("continue", meta["continue"])
        base, name = meta.get("generateName"), meta.get("name")
        if base and isinstance(name, str):
            self._learn_generated(name)

    def _learn_generated(self, name: str) -> None:
        known = name in self.chosen or name in self._generated
        if not known and _SUFFIX.fullmatch(name[-5:]):
            self._generated[name] = f"{name[:-5]}{self._name('gen', name[-5:])}"

    def _name(self, kind: str, value: str) -> str:
        known = self._names.get(f"{kind} {value}")
        if known is not None:
            return known
        self._counts[kind] = self._counts.get(kind, 0) + 1
        name = f"<{kind}:{self._counts[kind]}>"
        self._names[f"{kind} {value}"] = name
        self.values[name] = value
        return name

    def _encoded(self, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            if value.get("kind") == "Table":
                return {k: self._cells(value, k, inner) for k, inner in value.items()}
            return {self._text(k): self._encoded(inner, k) for k, inner in value.items()}
        if isinstance(value, list):
            return [self._encoded(inner, key) for inner in value]
        return self._leaf(value, key) if isinstance(value, str) else value

    def _leaf(self, value: str, key: str) -> str:
        if key in ("resourceVersion", "continue", "token"):
            kind = {"resourceVersion": "rv"}.get(key, key)
            return self._names.get(f"{kind} {value}", value)
        return _ADDRESS if key == "serverAddress" else self._text(value)

    def _cells(self, table: Mapping[str, Any], key: str, inner: Any) -> Any:
        """The rows of a table with a placeholder for ages."""
        if key != "rows" or not isinstance(inner, list):
            return self._encoded(inner, key)
        columns = [
            columnDefinition.get("name")
            for columnDefinition in table.get("columnDefinitions") or ()
        ]
        self._columns = columns or self._columns
        return [self._row(row, self._columns) for row in inner]

    def _row(self, row: Mapping[str, Any], columns: list[Any]) -> Any:
        encoded = self._encoded(row, "")
        for index, cell in enumerate(encoded.get("cells") or ()):
            aged = index < len(columns) and columns[index] in _AGES
            if aged and isinstance(cell, str) and _AGE.fullmatch(cell):
                encoded["cells"][index] = "<age>"
        return encoded

    def _text(self, text: str) -> str:
        for name, encoded in self._generated.items():
            if name in text:
                text = text.replace(name, encoded)
        if "-" in text:
            text = _UID.sub(self._uid, text)
            text = _TIME.sub(self._time, text)
        if "Key: /" in text:
            # The key has etcd's prefix or not, depending on whether the object was in the cache.
            text = _KEY.sub("Key: /registry/", text)
        if "ersion" in text:
            text = _VERSION_IN_TEXT.sub(self._version, text)
        return _HASH.sub("<hash>", text) if "hash=" in text else text

    def _uid(self, match: re.Match[str]) -> str:
        return self._names.get(f"uid {match.group(0)}", match.group(0))

    def _time(self, match: re.Match[str]) -> str:
        literal = match.group(0) in self.chosen or match.group(0) == _LAYOUT
        return match.group(0) if literal else "<time>"

    def _version(self, match: re.Match[str]) -> str:
        return match.group(1) + self._name("rv", match.group(2))
