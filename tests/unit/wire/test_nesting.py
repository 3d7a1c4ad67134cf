"""JSON in parts, by its brackets."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimctl.wire.nesting import depth, members, parts

TEXTS = st.text(st.sampled_from('[]{}",:\\n\\u a'), max_size=12)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def levels_of(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(map(levels_of, inner), default=0) if isinstance(inner, list) else 0


@given(VALUES, st.sampled_from([None, 1]))
def test_the_depth_is_that_of_the_value_whatever_its_texts_are(value: Any, indent: Any) -> None:
    assert depth(json.dumps(value, indent=indent).encode()) == levels_of(value)


NAMES = st.text("ab{[,]}", max_size=5)


@given(st.dictionaries(NAMES, VALUES), st.sampled_from([None, 1]))
def test_the_members_are_those_of_the_decoder(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert dict(members(text)) == msgspec.json.decode(text, type=dict[str, msgspec.Raw])


@given(st.lists(VALUES), st.sampled_from([None, 1]))
def test_the_parts_of_a_list_are_those_of_the_decoder(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent).encode()
    found = [json.loads(part) for part in parts(text, b"[")]
    assert found == value


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"null", b"7", b'"[]"', b"{}", b"[", b"[1", b"[1,[2]", b"[1]]", b"[1] x", b'["]'),
        *(b"[[1]", b"]"),
    ],
)
def test_what_is_no_whole_list_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError, match="not JSON"):
        list(parts(text, b"["))


@pytest.mark.parametrize("text", [b"", b"[]", b'{"a":1', b'{"a":1}}'])
def test_what_is_no_whole_object_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError, match="not JSON"):
        list(members(text))


def test_members_come_one_by_one() -> None:
    assert next(members(b'{"a":[1],"b":' + b"[" * 9000)) == ("a", msgspec.Raw(b"[1]"))
