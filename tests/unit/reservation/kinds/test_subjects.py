"""The part of an object that expressions read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimctl.reservation.kinds.expressions import ExpressionError, compiled
from claimctl.reservation.kinds.shipped import catalog
from claimctl.reservation.kinds.subjects import Subject, Unfit, fields_read, subject_of
from tests.support import extremes


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("has(self.spec.suspend) && self.spec.suspend", {("spec", "suspend")}),
        ("self.status.a.b.c == 1", {("status", "a")}),
        ("self.spec == {}", {("spec",)}),
        ("size(self.spec) == 0", {("spec",)}),
        ("self.spec.size() == 0", {("spec",)}),
        ("self.spec.xs.all(x, x.y == 1)", {("spec", "xs")}),
        ("self.spec.xs.all (x, x.y == 1)", {("spec", "xs")}),
        ("self . spec . xs == 1", {("spec", "xs")}),
        ("self.spec['x'] == 1", {("spec",)}),
        ("self['spec'].x == 1", {()}),
        ("self.all(k, k != 'spec')", {()}),
        ("'spec' in self", {()}),
        ("self == 1", {()}),
        ("self.spec.?x.orValue(1) == 1", {("spec",)}),
        ("self.`spec`.x == 1", {()}),
        ("self.spec.x // of the\n(1)", {()}),
        ("'self.spec.x' == '' && myself.a && selfish.b", {("spec", "x")}),
        ("true", set()),
    ],
)
def test_the_fields_that_an_expression_reads(source: str, fields: set[Any]) -> None:
    assert fields_read(source) == fields


def test_an_object_without_parts_has_empty_ones() -> None:
    empty: dict[str, Any] = {"metadata": {}, "spec": {}, "status": {}}
    for document in (b"{}", b"null", b"[]", b'{"spec":null}'):
        assert subject_of(document, ["self.spec.x", "self"]).document == empty


def test_only_the_fields_that_are_read_are_there() -> None:
    document = {
        "metadata": {"name": "a", "generation": 3},
        "spec": {"a": 1, "b": [1, None, {"c": None, "d": 2}], "e": None},
        "status": 5,
        "more": {"x": 1},
    }
    subject = subject_of(json.dumps(document).encode(), ["self.spec.b", "self.more.y"])
    assert subject.document == {
        "metadata": {"generation": 3},
        "spec": {"b": [1, None, {"d": 2}]},
        "status": 5,
        "more": {},
    }
    assert (subject.values, subject.longest) == (11, 4)


SOURCES = [
    source
    for kind in catalog()
    for source in (kind.spec.idle, kind.spec.ended, kind.spec.pods)
    if source
]
NAMES = [
    "replicas",
    "suspend",
    "conditions",
    "type",
    "status",
    "active",
    "runPolicy",
    "parallelism",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["Complete", "True", ""]),
    lambda parts: (
        st.lists(parts, max_size=2) | st.dictionaries(st.sampled_from(NAMES), parts, max_size=4)
    ),
    max_leaves=8,
)


def answer(source: str, subject: Subject) -> Any:
    try:
        return compiled(source).value(subject)
    except ExpressionError as error:
        return str(error)


@given(JSON, JSON, st.sampled_from(SOURCES))
def test_an_expression_says_the_same_of_what_it_reads_as_of_the_whole(
    spec: Any, status: Any, source: str
) -> None:
    document = json.dumps({"metadata": {"name": "a"}, "spec": spec, "status": status}).encode()
    part, whole = subject_of(document, [source]), subject_of(document, ["self"])
    assert answer(source, part) == answer(source, whole)


def test_too_much_is_refused() -> None:
    document = b'{"spec":{"a":"%b","b":1}}' % (b"a" * 300_000)
    assert subject_of(document, ["self.spec.b"]).document["spec"] == {"b": 1}
    with pytest.raises(Unfit, match="more than 262144 bytes"):
        subject_of(document, ["self.spec.a"])


@pytest.mark.parametrize("value", [*extremes.NO_NUMBERS[:2], *extremes.NO_TEXTS, "?"])
def test_what_is_not_json_is_refused(value: str) -> None:
    with pytest.raises(Unfit, match="cannot be read"):
        subject_of(f'{{"spec":{{"a":{value}}}}}'.encode("latin-1"), ["self.spec.a"])
