"""JSON patch (RFC 6902), merge patch (RFC 7386) and strategic merge patch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
    ordered: Object = _in_order(document, {id(holder) for holder in opened})
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


@dataclass(frozen=True, slots=True)
class _Operation:
    """One operation on a document. Objects on the way to a path are added to ``opened``."""

    document: Any
    given: Object
    opened: list[Object]

    @property
    def kind(self) -> Any:
        return self.given.get("op")

    @property
    def value(self) -> Any:
        return _copied(self.given.get("value"))

    def path(self, key: str = "path") -> str:
        path = self.given.get(key)
        if not isinstance(path, str):
            raise PatchError(f"{self.kind} operation failed to decode {key}: missing value")
        return path

    def place(self, path: str, missing: str) -> tuple[Any, str]:
        """The object or list that holds the last part of a path, and that part.

        Raises:
            PatchError: there is nothing that could hold it, in the words of ``missing``.
        """
        holder_and_key = _holder(self.document, path, self.opened)
        if holder_and_key is None:
            raise PatchError(f"{self.kind} operation does not apply: {missing}: missing value")
        return holder_and_key


@contextmanager
def _about(what: str) -> Iterator[None]:
    """Say in errors what failed."""
    try:
        yield
    except PatchError as error:
        raise PatchError(f"{what}: {error}") from None


def _operate(document: Any, given: Any, opened: list[Object]) -> Any:
    if not isinstance(given, dict):
        raise PatchError("the operation is no object")
    kind = given.get("op")
    if kind not in _OPERATIONS:
        raise PatchError(f"Unexpected kind: {kind}")
    return _OPERATIONS[kind](_Operation(document, given, opened))


def _added(operation: _Operation) -> Any:
    path = operation.path()
    holder, key = operation.place(path, f'doc is missing path: "{path}"')
    with _about(f"error in add for path: '{path}'"):
        _add(holder, key, operation.value)
    return operation.document


def _removed(operation: _Operation) -> Any:
    path = operation.path()
    holder, key = operation.place(path, f'doc is missing path: "{path}"')
    with _about(f"error in remove for path: '{path}'"):
        _remove(holder, key)
    return operation.document


def _replaced(operation: _Operation) -> Any:
    path = operation.path()
    if path == "":
        return operation.value
    holder, key = operation.place(path, f"doc is missing path: {path}")
    try:
        _get(holder, key)
    except PatchError:
        text = f"replace operation does not apply: doc is missing key: {path}: missing value"
        raise PatchError(text) from None
    _set(holder, key, operation.value)
    return operation.document


def _moved(operation: _Operation) -> Any:
    path, source = operation.path(), operation.path("from")
    holder, key = operation.place(source, f"doc is missing from path: {source}")
    with _about(f"error in move for path: '{key}'"):
        value = _get(holder, key)
        _remove(holder, key)
    holder, key = operation.place(path, f"doc is missing destination path: {path}")
    with _about(f"error in move for path: '{path}'"):
        _add(holder, key, value)
    return operation.document


def _copied_to(operation: _Operation) -> Any:
    path, source = operation.path(), operation.path("from")
    holder, key = operation.place(source, f"doc is missing from path: {source}")
    with _about(f"error in copy for from: '{source}'"):
        value = _copied(_get(holder, key))
    holder, key = operation.place(path, f"doc is missing destination path: {path}")
    with _about("error while adding value during copy"):
        _add(holder, key, value)
    return operation.document


def _tested(operation: _Operation) -> Any:
    path = operation.path()
    value = operation.document
    if path:
        holder, key = operation.place(path, f"is missing path: {path}")
        with _about(f"error in test for path: '{path}'"):
            value = _get(holder, key)
    if not _equal(value, operation.given.get("value")):
        raise FailedTest(f"testing value {path} failed: test failed")
    return operation.document


_OPERATIONS: dict[str, Callable[[_Operation], Any]] = {
    "add": _added,
    "copy": _copied_to,
    "move": _moved,
    "remove": _removed,
    "replace": _replaced,
    "test": _tested,
}


def _equal(one: Any, other: Any) -> bool:
    """Whether two values have the same JSON text: 1 differs from true and from 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return type(one) is type(other) and bool(one == other)


def _holder(document: Any, pointer: str, opened: list[Object]) -> tuple[Any, str] | None:
    """The object or list that holds the last part of a pointer, and that part; None if there is
    none. Objects on the way are added to ``opened``."""
    if "/" not in pointer:
        return None
    parts = _parts(pointer)
    value = document
    for part in parts[:-1]:
        try:
            value = _get(value, part)
        except PatchError:
            return None
        if not isinstance(value, (dict, list)):
            return None
        if isinstance(value, dict):
            opened.append(value)
    return value, parts[-1]


def _index(key: str, count: int) -> int:
    """An index below ``count``; a negative one counts from the end."""
    if not re.fullmatch(r"[+-]?[0-9]+", key):
        raise PatchError(f'strconv.Atoi: parsing "{key}": invalid syntax')
    if len(key) > _DIGITS:
        raise PatchError(f'strconv.Atoi: parsing "{key}": value out of range')
    index = int(key)
    if index >= count or index < -count:
        raise PatchError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % count if count else 0


_DIGITS = 19
"""More are no number of 64 bits."""


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
    elif re.fullmatch(r"[+-]?[0-9]+", key):
        holder.insert(_index(key, len(holder) + 1), value)
    else:
        with _about(f"value was not a proper array index: '{key}'"):
            _index(key, 0)


def _remove(holder: Any, key: str) -> None:
    if isinstance(holder, list):
        del holder[_index(key, len(holder))]
    elif key in holder:
        del holder[key]
    else:
        raise PatchError(f"Unable to remove nonexistent key: {key}: missing value")
