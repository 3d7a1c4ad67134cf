"""The difference of two documents as a merge patch."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from claimctl.wire.base import merge_diff

LEAVES = st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
JSON = st.recursive(
    LEAVES, lambda inner: st.dictionaries(st.sampled_from("abc"), inner), max_leaves=8
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, written down as it stands there."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@given(OBJECTS, OBJECTS)
def test_a_diff_turns_the_old_into_the_new_and_nothing_into_itself(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert merged(old, merge_diff(old, new)) == new
    assert merge_diff(new, new) == {}
