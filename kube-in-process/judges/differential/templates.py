"""Fills in requests that refer to earlier answers.

A text may contain ``<=pods/a#metadata.uid>``: that field of pod ``a`` in its last answer.
A body ``{"$from": "pods/a", "ops": [["set", ["spec", "x"], 1], ["del", ["metadata", "labels"]]]}``
is the object as it was last answered, with changes.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

Json = Any
Step = dict[str, Any]
"""A step with ``request``, and for a watch ``during``."""

_REFERENCE = re.compile(r"<=([^#>]*)#([^>]*)>")


@dataclass
class Known:
    """The objects in answers, by plural and name; lists under their plural."""

    objects: dict[str, Json] = field(default_factory=dict)

    def learn(self, path: str, body: Json) -> None:
        """Keep the object or list of an answer."""
        if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
            return
        if body.get("kind") in ("Status", "Scale", "Table", "PartialObjectMetadata"):
            return
        plural = plural_of(path)
        name = body["metadata"].get("name")
        if isinstance(name, str):
            self.objects[f"{plural}/{name}"] = body
        elif "items" in body:
            self.objects[plural] = body

    def resolved(self, value: Json) -> Json:
        """``value`` with its references filled in; unknown references stay."""
        if isinstance(value, dict):
            if "$from" in value:
                return self._derived(value)
            return {key: self.resolved(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.resolved(inner) for inner in value]
        if isinstance(value, str) and "<=" in value:
            return _REFERENCE.sub(self._looked_up, value)
        return value

    def _looked_up(self, match: re.Match[str]) -> str:
        value: Json = self.objects.get(match.group(1))
        for part in match.group(2).split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value if isinstance(value, str) else "none"

    def _derived(self, value: Mapping[str, Json]) -> Json:
        derived = copy.deepcopy(self.objects.get(value["$from"]) or value.get("else") or {})
        if isinstance(derived.get("metadata"), dict):
            for key in ("managedFields", "creationTimestamp", "deletionTimestamp"):
                derived["metadata"].pop(key, None)
        for operation in value.get("ops", ()):
            _change(derived, operation)
        return self.resolved(derived)


def _change(document: Json, operation: list[Json]) -> None:
    how, path = operation[0], operation[1]
    holder = document
    for key in path[:-1]:
        if isinstance(holder, dict):
            holder = holder.setdefault(key, {}) if how == "set" else holder.get(key)
        elif isinstance(holder, list) and isinstance(key, int) and key < len(holder):
            holder = holder[key]
        else:
            return
    last = path[-1]
    if isinstance(holder, list):
        _change_item(holder, how, last, operation)
    elif isinstance(holder, dict) and how == "set":
        holder[last] = operation[2]
    elif isinstance(holder, dict):
        holder.pop(last, None)


def _change_item(holder: list[Json], how: str, last: Json, operation: list[Json]) -> None:
    if not isinstance(last, int):
        return
    if how == "set" and last < len(holder):
        holder[last] = operation[2]
    elif how == "set":
        holder.append(operation[2])
    elif last < len(holder):
        del holder[last]


def plural_of(path: str) -> str:
    """The resource of a path: ``pods`` for /api/v1/namespaces/n/pods/a/status."""
    parts = [part for part in path.partition("?")[0].split("/") if part]
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    return rest[0] if rest else ""


def query(**parameters: Json) -> str:
    """A query string. A trailing underscore avoids Python's keywords."""
    pairs = [(name.rstrip("_"), value) for name, value in parameters.items()]
    text = "&".join(f"{name}={quote(str(value), safe='<=#>/')}" for name, value in pairs)
    return f"?{text}" if text else ""
