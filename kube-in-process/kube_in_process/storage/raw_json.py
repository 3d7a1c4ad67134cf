"""JSON that a server stores as it was sent: the parameters of a driver, and its data.

Go keeps such a part as bytes and compares it as bytes. A PUT or POST stores the bytes that it
brings. An answer has them without spaces, with ``<``, ``>`` and ``&`` escaped; a merge patch or a
JSON patch is applied to that form, and stores it. A strategic merge patch and an apply go through
maps, whose keys Go writes in sorted order. So even a patch without effect can change the bytes.

Here such a part is a dict if its bytes are what Go writes for a dict in that order. Parameters in
any other form are ``{TEXT: the text}``. So two parts have the same bytes if they encode the same.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec

from kube_in_process.objects import Object
from kube_in_process.storage.store import decode_any, encode, outline

TEXT = "\0text"
"""The one key of parameters that are kept as text."""
_RAW = ("parameters", "data")
_KEPT = re.compile(rb'\{"\\u0000text":("(?:[^"\\]|\\.)*")\}')
_BLANKS = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')
_ESCAPED = re.compile("[<>&\u2028\u2029]")


def keep_texts(obj: Object, body: bytes) -> None:
    """Keep the parameters in ``obj`` as ``body`` has them, from which it was decoded."""
    if b'"opaque"' in body:
        with suppress(msgspec.DecodeError):
            _keep(obj, body)


def _keep(value: Any, text: bytes) -> None:
    if isinstance(value, list):
        for item, part in zip(value, decode_any(text, type=list[msgspec.Raw]), strict=True):
            _keep(item, part)
    if not isinstance(value, dict):
        return
    parts = outline(text)
    for key, inner in value.items():
        if (
            key == "opaque"
            and isinstance(inner, dict)
            and isinstance(inner.get("parameters"), dict)
        ):
            inner["parameters"] = _part(bytes(outline(parts[key])["parameters"]).decode())
        else:
            _keep(inner, parts[key])


def _part(text: str) -> Object:
    value: Object = decode_any(text)
    return value if _escaped(encode(value).decode()) == text else {TEXT: text}


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _compact(text: str) -> str:
    return _escaped(_BLANKS.sub(lambda match: match[1] or "", text))


def as_answered(data: bytes) -> bytes:
    """An encoded object or list as an answer has it."""
    return _KEPT.sub(lambda kept: _compact(decode_any(kept[1])).encode(), data)


def as_patched(data: bytes) -> bytes:
    """An encoded object as a merge patch or a JSON patch finds it."""
    return _KEPT.sub(lambda kept: encode(_part(_compact(decode_any(kept[1])))), data)


def same(new: Any, old: Any) -> bool:
    """Whether values are equal; ``parameters`` of an opaque config are compared as text.

    A list without items equals null, as in Go's ``Semantic.DeepEqual``.
    """
    if isinstance(new, dict) and isinstance(old, dict):
        return new.keys() == old.keys() and all(
            encode(new[key]) == encode(old[key]) if key in _RAW else same(new[key], old[key])
            for key in new
        )
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(same, new, old))
    return bool(new == old) or (_is_no_list(new) and _is_no_list(old))


def _is_no_list(value: Any) -> bool:
    return value is None or value == []


def sorted_keys(value: Any) -> Any:
    """``value`` with sorted keys in every raw part, as after a patch through maps."""
    if isinstance(value, dict):
        return {
            key: all_sorted(_read(inner)) if key in _RAW else sorted_keys(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [sorted_keys(inner) for inner in value]
    return value


def _read(part: Any) -> Any:
    kept = isinstance(part, dict) and part.keys() == {TEXT}
    return _numbers(decode_any(part[TEXT]) if kept else part)


def _numbers(value: Any) -> Any:
    """``value`` with whole floats as Go writes them, without a point."""
    if isinstance(value, dict):
        return {key: _numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def all_sorted(value: Any) -> Any:
    """``value`` with sorted keys everywhere."""
    if isinstance(value, dict):
        return {key: all_sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [all_sorted(inner) for inner in value]
    return value
