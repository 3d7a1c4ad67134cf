"""JSON patch (RFC 6902), merge patch (RFC 7386) and strategic merge patch."""

from __future__ import annotations

import re
from typing import Any

from kube_in_process.errors import StatusError
from kube_in_process.objects import Object

_REFUSED = "the server rejected our request due to an error in our request"


class PatchError(Exception):
    """A patch that cannot be applied to this object. The text is that of the server's library."""


class FailedTest(PatchError):
    """A test in a patch failed."""


def refused() -> StatusError:
    """The answer to every JSON patch that fails."""
    return StatusError(422, "Invalid", _REFUSED, {})


def merge(target: Any, patch: Any) -> Any:
    """A merge patch (RFC 7386). The target is not changed."""
    if not isinstance(patch, dict):
        return _without_nulls(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    # Go's library reads the objects that it merges into maps, which it writes with sorted keys
    return {key: merged[key] for key in sorted(merged)}


def _without_nulls(value: Any) -> Any:
    """A list of a merge patch, its objects without the fields that are null.

    RFC 7386 would keep them. Go's library removes them, and keeps the items that are null.
    """
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _copied(value: Any) -> Any:
    """A copy of JSON. ``copy.deepcopy`` takes several times as long."""
    if isinstance(value, list):
        return [_copied(item) for item in value]
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return value


def json_patch(target: Object, operations: list[Any]) -> Object:
    """A JSON patch (RFC 6902), by the rules of the server's library. The target is not changed.

    A missing field counts as null in a ``copy``, a ``replace`` or a ``test``. A negative index
    counts from the end. The whole document can be replaced and tested only.

    Raises:
        PatchError: a path that is not there, a failed test, or an unknown operation.
    """
    document: Any = _copied(target)
    opened: list[Object] = [document]
    for operation in operations:
        document = _operate(document, operation, opened)
    if not isinstance(document, dict):
        raise PatchError("the result is no object")
    ordered: Object = _in_order(document, {id(each) for each in opened})
    return ordered


def _in_order(value: Any, opened: set[int]) -> Any:
    """Sort the keys of the objects in ``opened``: Go's library has read them into maps."""
    if isinstance(value, list):
        return [_in_order(item, opened) for item in value]
    if not isinstance(value, dict):
        return value
    keys = sorted(value) if id(value) in opened else list(value)
    return {key: _in_order(value[key], opened) for key in keys}


def _parts(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _operate(document: Any, operation: Any, opened: list[Object]) -> Any:
    if not isinstance(operation, dict):
        raise PatchError("the operation is no object")
    kind, path = operation.get("op"), operation.get("path")
    try:
        return _operated(document, operation, opened)
    except _NoHolder:
        shown = path if kind == "replace" else f'"{path}"'
        text = f"{kind} operation does not apply: doc is missing path: {shown}: missing value"
        raise PatchError(text) from None
    except _NoField as error:
        shown = path if kind == "remove" else str(error)
        text = f"Unable to remove nonexistent key: {error}: missing value"
        raise PatchError(f"error in {kind} for path: '{shown}': {text}") from None


class _NoHolder(PatchError):
    """There is nothing that could hold the last part of a path."""


class _NoField(PatchError):
    """A field to remove is not there; the text is its name."""


def _operated(document: Any, operation: Object, opened: list[Object]) -> Any:
    kind, path = operation.get("op"), operation.get("path")
    value = _copied(operation.get("value"))
    if kind == "replace" and path == "":
        return value
    if kind == "test":
        return _tested(document, path, operation, opened)
    if kind in ("copy", "move"):
        holder, key = _holder(document, operation.get("from"), opened)
        value = _copied(_get(holder, key))
        if kind == "move":
            _remove(holder, key)
        kind = "add"
    if kind not in ("add", "remove", "replace"):
        raise PatchError(f"Unexpected kind: {kind}")
    holder, key = _holder(document, path, opened)
    if kind == "remove":
        _remove(holder, key)
    elif kind == "replace":
        _set(holder, key, value)
    else:
        _add(holder, key, value)
    return document


def _tested(document: Any, path: Any, operation: Object, opened: list[Object]) -> Any:
    found = document if path == "" else _get(*_holder(document, path, opened))
    if not _equal(found, operation.get("value")):
        raise FailedTest(f"testing value {path} failed: test failed")
    return document


def _equal(one: Any, other: Any) -> bool:
    """Whether two values have the same JSON text: 1 differs from true and from 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return type(one) is type(other) and bool(one == other)


def _holder(document: Any, pointer: Any, opened: list[Object]) -> tuple[Any, str]:
    """The object or list at a pointer, and the last part of the pointer.

    Objects on the way are added to ``opened``.
    """
    if not isinstance(pointer, str) or "/" not in pointer:
        raise PatchError(f"bad pointer {pointer!r}")
    parts = _parts(pointer)
    value = document
    for part in parts[:-1]:
        value = _get(value, part)
        if not isinstance(value, (dict, list)):
            raise _NoHolder(pointer)
        if isinstance(value, dict):
            opened.append(value)
    return value, parts[-1]


def _index(key: str, count: int) -> int:
    """An index below ``count``; a negative one counts from the end."""
    try:
        index = int(key) if re.fullmatch(r"[+-]?[0-9]+", key) else count
    except ValueError:
        index = count
    if index >= count or index < -count:
        raise PatchError(f"no index {key}")
    return index % count if count else 0


def _get(holder: Any, key: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(key)
    return holder[_index(key, len(holder))]


def _set(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    else:
        holder[_index(key, len(holder))] = value


def _add(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    elif key == "-":
        holder.append(value)
    else:
        holder.insert(_index(key, len(holder) + 1), value)


def _remove(holder: Any, key: str) -> None:
    if isinstance(holder, list):
        del holder[_index(key, len(holder))]
    elif key in holder:
        del holder[key]
    else:
        raise _NoField(key)
