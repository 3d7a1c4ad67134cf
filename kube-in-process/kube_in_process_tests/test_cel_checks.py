"""The types and the cost of CEL rules. How a real server refuses rules is recorded:
``judges/conformance/refusals``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_in_process.crd.rule_errors import rule_errors
from kube_in_process.crd.rule_types import rule_type
from kube_in_process.text.cel_checker import Checker
from kube_in_process.text.cel_cost import cost
from kube_in_process.text.cel_tree import NotUnderstood, tree_of
from kube_in_process.text.cel_type import BOOL, INT, STRING, CelType

SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "s": {"type": "string", "maxLength": 10},
        "l": {"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 10}},
        "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}},
        "namespace": {"type": "string"},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
    },
}


def examined(source: str) -> tuple[str, CelType, int]:
    checker = Checker(source)
    tree = tree_of(source)
    seen = rule_type(SPEC)
    assert seen is not None
    kind = checker.check(tree, {"self": seen})
    return checker.error_text(), kind, cost(tree, checker.types)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("self.a * 2 + size(self.l)", "int"),
        ("self.l.map(x, x + 'b')", "list(string)"),
        ("self.l.map(x, x != '', size(x))", "list(int)"),
        ("self.m.filter(k, self.m[k] > 1)", "list(string)"),
        ("self.l.all(i, v, i < 3 && v != '')", "bool"),
        ("{'a': 1, 'b': self.a}", "map(string, int)"),
        ("timestamp(self.s) - timestamp('2026-01-01T00:00:00Z')", "duration"),
        ("self.__namespace__", "string"),
        ("'%s %d'.format([self.s, self.a])", "string"),
        ("self.s.split(',')", "list(string)"),
        ("(self.a > 1 || !has(self.s)) && self.s.matches(r'^\\d+$') // done", "bool"),
        ("[1, 2,].exists_one(x, x == self.a)", "bool"),
        ("quantity(self.s)", "kubernetes.Quantity"),
        ("self.?a.orValue(1) == 1", "bool"),
        ("self.?l[0].orValue('')", "string"),
        ("[] + [self.a]", "list(int)"),
        ("self.a in self.l.map(x, size(x))", "bool"),
        ("-self.a < -1 ? 0x1F : 2", "int"),
    ],
)
def test_an_expression_has_its_type(source: str, expected: str) -> None:
    problem, kind, _ = examined(source)
    assert (problem, str(kind)) == ("", expected)


@pytest.mark.parametrize("source", ["[?self.a]", "{?'a': self.a}", "self.a +"])
def test_what_the_parser_does_not_know_is_not_judged(source: str) -> None:
    with pytest.raises(NotUnderstood):
        tree_of(source)


def test_an_error_shows_its_line() -> None:
    problem, _, _ = examined("self.a > 1\n  && self.b")
    assert problem == "ERROR: <input>:2:10: undefined field 'b'\n |   && self.b\n | .........^"


def test_a_field_without_a_type_is_not_seen_by_rules() -> None:
    assert "undefined field 'any'" in examined("self.any == 1")[0]


@pytest.mark.parametrize(
    ("source", "amount"),
    [
        ("self.a > 1", 3),
        ("self.l.all(x, true)", 3003),
        ("self.l.all(x, x.startsWith('a'))", 5003),
        ("self.l.map(x, x).size() > 1", 13005),
        ("self.l.exists(x, self.l.exists(y, y == x))", 10007003),
    ],
)
def test_a_rule_costs_what_its_lists_allow(source: str, amount: int) -> None:
    assert examined(source)[2] == amount


def test_inner_rules_are_named_before_outer_ones_and_cost_as_often_as_they_apply() -> None:
    inner = {"type": "object", "x-kubernetes-validations": [{"rule": "self.x"}]}
    raw = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": inner}},
        "x-kubernetes-validations": [{"rule": "self.kind == 'A' && self.y"}],
    }
    first, second = rule_errors(raw, "at")
    assert first.path == "at.properties[items].items.x-kubernetes-validations[0].rule"
    assert "undefined field 'y'" in second.message


def test_a_rule_that_is_not_cel_is_found_when_the_schema_is_defined() -> None:
    raw = {"type": "object", "x-kubernetes-validations": [{"rule": "self.("}]}
    (error,) = rule_errors(raw, "at")
    assert error.message.startswith('Invalid value: {"Rule":"self.(","Message":""')
    assert "}: compilation failed: ERROR: <input>:1:" in error.message


@given(st.text("selfai.[]()'\"+-*<>=!&|?:, 1x{}", max_size=20))
def test_any_text_is_understood_or_not(source: str) -> None:
    try:
        tree = tree_of(source)
    except NotUnderstood:
        return
    scope = {"self": CelType("object", fields={"a": INT, "s": STRING}), "x": BOOL}
    checker = Checker(source)
    checker.check(tree, scope)
    assert cost(tree, checker.types) >= 0
    checker.error_text()
