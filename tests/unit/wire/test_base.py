"""Documents as Go writes them, and the difference of two of them as a merge patch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimctl.wire.base import decode, encode_as_go, merge_diff

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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": {"d": 1, "c": [1.5]}, "a": None}, '{"a":null,"b":{"c":[1.5],"d":1}}'),
        ({"a": "<b> &"}, '{"a":"\\u003cb\\u003e \\u0026"}'),
        ({"\u2028": "\u2029 \u00e9"}, '{"\\u2028":"\\u2029 \u00e9"}'),
    ],
)
def test_a_document_is_written_as_go_does(value: dict[str, Any], text: str) -> None:
    assert encode_as_go(value).decode() == text
    assert decode(encode_as_go(value), dict[str, Any]) == value
