"""JSON that a server stores as it was sent: the order of its keys matters.

A strategic merge patch goes through maps, whose keys Go writes in sorted order. So even a patch
without effect can change what was sent in another order.
"""

from __future__ import annotations

from typing import Any

from kube_in_process.storage.store import encode

_RAW = ("parameters", "data")


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
            key: all_sorted(inner) if key in _RAW else sorted_keys(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [sorted_keys(inner) for inner in value]
    return value


def all_sorted(value: Any) -> Any:
    """``value`` with sorted keys everywhere."""
    if isinstance(value, dict):
        return {key: all_sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [all_sorted(inner) for inner in value]
    return value
