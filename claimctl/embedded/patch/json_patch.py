"""JSON patch (RFC 6902), merge patch (RFC 7386) and strategic merge patch."""

from __future__ import annotations

import copy
from typing import Any

from claimctl.embedded.errors import StatusError

Object = dict[str, Any]
_REFUSED = "the server rejected our request due to an error in our request"


class PatchError(Exception):
    """A patch that cannot be carried out on this object."""


def refused() -> StatusError:
    """What every JSON patch that fails is answered with."""
    return StatusError(422, "Invalid", _REFUSED, {})


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386; the target is not changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def json_patch(target: Object, operations: list[Any]) -> Object:
    """RFC 6902; the target is not changed.

    Raises:
        PatchError: a path that is not there, a failed test, or an unknown operation.
    """
    document: Any = copy.deepcopy(target)
    for operation in operations:
        document = _operate(document, operation)
    if not isinstance(document, dict):
        raise PatchError("the result is no object")
    return document


def _operate(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict):
        raise PatchError("the operation is no object")
    kind = operation.get("op")
    path = _tokens(operation.get("path"))
    if kind in ("add", "replace", "test"):
        return _with_value(document, kind, path, operation.get("value"))
    if kind == "remove":
        return _remove(document, path)[0]
    if kind in ("move", "copy"):
        source = _tokens(operation.get("from"))
        value = copy.deepcopy(_get(document, source))
        if kind == "move":
            document = _remove(document, source)[0]
        return _add(document, path, value)
    raise PatchError(f"unexpected kind: {kind}")


def _with_value(document: Any, kind: str, path: list[str], value: Any) -> Any:
    if kind == "add":
        return _add(document, path, copy.deepcopy(value))
    if kind == "replace":
        if not path:
            return copy.deepcopy(value)
        _get(document, path)
        document, _ = _remove(document, path)
        return _add(document, path, copy.deepcopy(value))
    found = _get(document, path, missing_is_null=value is None)
    if found != value:
        raise PatchError("testing value failed")
    return document


def _tokens(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError(f"bad pointer {pointer!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _index(container: list[Any], token: str, limit: int) -> int:
    if not (token.isascii() and token.isdigit()) or int(token) > limit:
        raise PatchError(f"no index {token}")
    return int(token)


def _get(document: Any, path: list[str], *, missing_is_null: bool = False) -> Any:
    value = document
    for token in path:
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, dict) and missing_is_null:
            return None
        elif isinstance(value, list):
            value = value[_index(value, token, len(value) - 1)]
        else:
            raise PatchError(f"no path {path}")
    return value


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _get(document, path[:-1])
    last = path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else _index(parent, last, len(parent)), value)
    else:
        raise PatchError(f"no path {path}")
    return document


def _remove(document: Any, path: list[str]) -> tuple[Any, Any]:
    if not path:
        return None, document
    parent = _get(document, path[:-1])
    last = path[-1]
    if isinstance(parent, dict) and last in parent:
        return document, parent.pop(last)
    if isinstance(parent, list):
        return document, parent.pop(_index(parent, last, len(parent) - 1))
    raise PatchError(f"no path {path}")
