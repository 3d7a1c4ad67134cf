"""The errors of an applied configuration before its merge: fields, types, list keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kube_in_process.schema.tree import Json, Schema, keys_of

_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
}
_UNTYPED = ("int-or-string", "quantity", "date-time", "micro-time")
"""Types with a decoder of their own: the schema of an apply accepts any scalar for them."""
_NAMES = {"integer": "numeric (int or float)", "number": "numeric (int or float)"}


_REPEATED = "duplicate entries for key"


def typed_problem(schema: Schema, value: Json, *, again: bool = False) -> str:
    """The error text, such as ``.spec.x: expected map, got &{y}``; '' if there is none.

    ``again`` allows repeated keys in lists, as in objects that were not applied.
    """
    problems = [
        problem for problem in _problems(schema, value, "") if not (again and _REPEATED in problem)
    ]
    if len(problems) > 1:
        return "\n  ".join(["errors:", *problems])
    return problems[0] if problems else ""


def _problems(schema: Schema, value: Json, path: str) -> Iterator[str]:
    if value is None or (not schema.type and schema.format == ""):
        return
    if schema.type in ("object", "map"):
        yield from _map(schema, value, path)
    elif schema.type == "array":
        yield from _list(schema, value, path)
    elif schema.format in _UNTYPED:
        if isinstance(value, (dict, list)):
            yield f"{path}: expected any scalar, got &{{{go_value(value)}}}"
    elif schema.type in _SCALARS and not _fits(schema, value):
        yield f"{path}: expected {_wanted(schema, value)}"


def _wanted(schema: Schema, value: Json) -> str:
    if schema.type in _NAMES:
        return f"{_NAMES[schema.type]}, got {_GO_TYPES.get(type(value), 'float64')}"
    if schema.type == "boolean":
        return f"boolean, got &{{{go_value(value)}}}"
    return f"{schema.type}, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"


def _fits(schema: Schema, value: Json) -> bool:
    if isinstance(value, bool):
        return schema.type == "boolean"
    return isinstance(value, _SCALARS[schema.type])


def _map(schema: Schema, value: Json, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected map, got &{{{go_value(value)}}}"
        return
    for key in sorted(value):
        below = schema.field(key)
        if below is not None:
            yield from _problems(below, value[key], f"{path}.{key}")
        elif schema.type == "object" and schema.properties and not schema.keeps_unknown:
            # A struct without fields is a map of anything here. The check of a map ends here.
            yield f"{path}.{key}: field not declared in schema"
            return


def _list(schema: Schema, value: Json, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got &{{{go_value(value)}}}"
        return
    if schema.items is None:
        return
    seen: list[str] = []
    for index, item in enumerate(value):
        wrong = _no_element(schema, item)
        if wrong:
            yield f"{path}: element {index}: {wrong}"
            return
        element = _element(schema, item, index)
        if element in seen:
            yield f"{path}: {_REPEATED} {element}"
        seen.append(element)
        yield from _problems(schema.items, item, f"{path}{element}")


def _no_element(schema: Schema, item: Json) -> str:
    """Why an item cannot be in a keyed list or a set; '' if it can."""
    if schema.list_type == "map":
        if item is None:
            return "associative list with keys may not have a null element"
        if not isinstance(item, dict):
            return "associative list with keys may not have non-map elements"
        if not keys_of(schema, item):
            keys = " ".join(json.dumps(key) for key in schema.list_keys)
            return (
                f"associative list with keys has an element that omits all key fields [{keys}] "
                "(and doesn't have default values for any key fields)"
            )
    if schema.list_type == "set":
        if isinstance(item, dict):
            return "associative list without keys has an element that's a map type"
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        if item is None:
            return "associative list without keys has an element that's an explicit null"
    return ""


def _element(schema: Schema, item: Json, index: int) -> str:
    if schema.list_type == "map" and isinstance(item, dict):
        keys = sorted(keys_of(schema, item).items())
        return f"[{','.join(f'{key}={_shown(value)}' for key, value in keys)}]"
    if schema.list_type == "set":
        return f"[={json.dumps(item)}]"
    return f"[{index}]"


def _shown(value: Json) -> str:
    """A value in a path. Objects have no braces there."""
    if isinstance(value, dict):
        return "".join(f"{key}={_shown(value[key])}" for key in sorted(value))
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    return json.dumps(value)


_GO_TYPES = {str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}


def go_syntax(value: Any) -> str:
    """A JSON value as Go prints it with %#v."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(go_syntax, value))}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "interface {}(nil)" if value is None else go_value(value)


def go_value(value: Any) -> str:
    """A JSON value as Go prints it with %v."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_value, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
