"""CEL rules of custom kinds (``x-kubernetes-validations``).

A rule with ``oldSelf`` is a transition rule. It is evaluated only if the value had a previous value
at the same place (in a map list: the item with the same keys).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube_in_process.errors import FieldError, invalid_text
from kube_in_process.text.cel import EvaluationError, compiled

Json = Any
Raw = Mapping[str, Json]

_OLD_SELF = re.compile(r"\boldSelf\b")
_REASONS = {
    "FieldValueForbidden": ("FieldValueForbidden", "Forbidden: "),
    "FieldValueRequired": ("FieldValueRequired", "Required value: "),
    "FieldValueDuplicate": ("FieldValueDuplicate", "Duplicate value: "),
}
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[.\-/]")
_IDENTIFIER = re.compile(r"^[A-Za-z_.\-/][A-Za-z0-9_.\-/]*$")
_KEYWORDS = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    }
)


@dataclass(frozen=True, slots=True)
class _Value:
    """A value to check, and its old value; ``known`` is false if there was none."""

    raw: Raw
    new: Json
    old: Json = None
    known: bool = False
    path: str = ""


@dataclass(slots=True)
class Rules:
    """The rules of one version of a custom kind."""

    raw: Raw
    any: bool = field(init=False)

    def __post_init__(self) -> None:
        self.any = next(_rules(self.raw), None) is not None

    def check(self, new: Json, old: Json | None) -> list[FieldError]:
        """An error for each rule that ``new`` breaks; ``old`` is None at create."""
        if not self.any:
            return []
        return list(_check(_Value(self.raw, new, old, old is not None)))


def _rules(raw: Raw, path: str = "") -> Iterator[tuple[str, int, Raw]]:
    for index, rule in enumerate(raw.get("x-kubernetes-validations", ())):
        yield path, index, rule
    for name, below in raw.get("properties", {}).items():
        yield from _rules(below, f"{path}.properties[{name}]")
    for key in ("items", "additionalProperties"):
        if isinstance(raw.get(key), dict):
            yield from _rules(raw[key], f"{path}.{key}")


def _check(value: _Value) -> Iterator[FieldError]:
    if value.new is None:
        return
    for rule in value.raw.get("x-kubernetes-validations", ()):
        error = _apply(rule, value)
        if error is not None:
            yield error
    for below in _children(value):
        yield from _check(below)


def _children(value: _Value) -> Iterator[_Value]:
    if isinstance(value.new, dict):
        yield from _fields(value)
    elif isinstance(value.new, list) and isinstance(value.raw.get("items"), dict):
        yield from _items(value)


def _fields(value: _Value) -> Iterator[_Value]:
    properties = value.raw.get("properties", {})
    additional = value.raw.get("additionalProperties")
    old = value.old if isinstance(value.old, dict) else {}
    for name, item in value.new.items():
        raw = properties.get(name, additional)
        if isinstance(raw, dict):
            path = f"{value.path}.{name}" if value.path else name
            yield _Value(raw, item, old.get(name), name in old, path)


def _items(value: _Value) -> Iterator[_Value]:
    keys = value.raw.get("x-kubernetes-list-map-keys", ())
    before = {}
    if keys and isinstance(value.old, list):
        before = {_key(item, keys): item for item in value.old}
    for index, item in enumerate(value.new):
        key = _key(item, keys)
        path = f"{value.path}[{index}]"
        yield _Value(value.raw["items"], item, before.get(key), key in before, path)


def _key(item: Json, keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(repr(item.get(key)) for key in keys) if isinstance(item, dict) else ()


def _apply(rule: Raw, value: _Value) -> FieldError | None:
    source = rule.get("rule", "")
    names: dict[str, Json] = {"self": to_cel(value.raw, value.new)}
    if _OLD_SELF.search(source):
        if not value.known or value.old is None:
            return None
        names["oldSelf"] = to_cel(value.raw, value.old)
    message = rule.get("message") or f"failed rule: {source}"
    try:
        if compiled(source)(names):
            return None
    except EvaluationError as error:
        shown = f"{error} evaluating rule: {message}"
        return invalid_text(value.path or "<nil>", f'"{_kind(value.new)}"', shown)
    return _broken(rule, value, _message(rule, names, message))


def _message(rule: Raw, names: Mapping[str, Json], message: str) -> str:
    """The text of the message expression; the plain message if that fails."""
    expression = rule.get("messageExpression")
    if not expression:
        return message
    try:
        return str(compiled(expression)(names))
    except EvaluationError:
        return message


def _broken(rule: Raw, value: _Value, message: str) -> FieldError:
    path = f"{value.path}{rule.get('fieldPath', '')}".lstrip(".") or "<nil>"
    reason, words = _REASONS.get(rule.get("reason", ""), ("FieldValueInvalid", "Invalid value: "))
    return FieldError(reason, path, f"{words}{message}")


def _kind(value: Json) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    return names.get(type(value), "object")


def to_cel(raw: Raw, value: Json) -> Json:
    """A value as a rule sees it: with escaped property names, times and durations."""
    if isinstance(value, dict):
        return _object_to_cel(raw, value)
    if isinstance(value, list):
        items = raw.get("items") or {}
        return [to_cel(items, item) for item in value]
    if isinstance(value, str) and raw.get("format") in _READ:
        return compiled(_READ[raw["format"]])({"text": value})
    if isinstance(value, int) and not isinstance(value, bool) and raw.get("type") == "number":
        return float(value)
    return value


_READ = {"date-time": "timestamp(text)", "duration": "duration(text)"}


def _object_to_cel(raw: Raw, value: dict[str, Json]) -> Json:
    properties = raw.get("properties", {})
    additional = raw.get("additionalProperties")
    below = additional if isinstance(additional, dict) else {}
    return {
        escaped(name) if name in properties else name: to_cel(properties.get(name, below), item)
        for name, item in value.items()
    }


def escaped(name: str) -> str:
    """The CEL identifier for a property name."""
    if name in _KEYWORDS:
        return f"__{name}__"
    if not _IDENTIFIER.match(name):
        return name
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)
