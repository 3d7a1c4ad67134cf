"""Custom objects against their schema: defaults, validation, CEL rules."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.crd.rules import Rules
from kube_in_process.crd.structural import fill_defaults, validate

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "string", "enum": ["small", "large"]},
        "replicas": {"type": "integer", "minimum": 0, "default": 1},
        "color": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 10},
        "port": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "since": {"type": "string", "format": "date-time"},
        "pods": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object",
                "properties": {
                    "uid": {"type": "string"},
                    "kept": {"type": "boolean", "default": True},
                },
            },
        },
    },
}
ROOT = {"type": "object", "required": ["spec"], "properties": {"spec": SPEC}}


def shown(spec: dict[str, Any]) -> list[str]:
    return [str(error) for error in validate(ROOT, {"spec": spec})]


def test_defaults_are_filled_in_also_inside_lists_and_for_nulls() -> None:
    widget = {"spec": {"size": "small", "replicas": None, "pods": [{"uid": "u"}]}}
    fill_defaults(ROOT, widget)
    assert widget == {
        "spec": {"size": "small", "replicas": 1, "pods": [{"uid": "u", "kept": True}]}
    }


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"size": "small", "port": "http", "since": "2026-01-02T03:04:05Z"}, []),
        ({}, ["spec.size: Required value"]),
        (
            {"size": "huge"},
            ['spec.size: Unsupported value: "huge": supported values: "small", "large"'],
        ),
        (
            {"size": "small", "replicas": -1},
            [
                "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than "
                "or equal to 0"
            ],
        ),
        (
            {"size": "small", "replicas": "three"},
            [
                'spec.replicas: Invalid value: "string": spec.replicas in body must be of type '
                'integer: "string"'
            ],
        ),
        (
            {"size": "small", "port": 1.5},
            [
                'spec.port: Invalid value: "number": spec.port in body must be of type '
                'integer,string: "number"'
            ],
        ),
        (
            {"size": "small", "color": "RED!"},
            ["spec.color: Invalid value: \"RED!\": spec.color in body should match '^[a-z]+$'"],
        ),
        (
            {"size": "small", "color": "abcdefghijk"},
            ["spec.color: Too long: may not be more than 10 bytes"],
        ),
        ({"size": "small", "tags": ["x", "x"]}, ['spec.tags[1]: Duplicate value: "x"']),
        (
            {"size": "small", "pods": [{"uid": "u"}, {"uid": "u"}]},
            ['spec.pods[1]: Duplicate value: {"uid":"u"}'],
        ),
        (
            {"size": "small", "since": "yesterday"},
            [
                'spec.since: Invalid value: "yesterday": spec.since in body must be of type '
                'date-time: "yesterday"'
            ],
        ),
    ],
)
def test_values_are_refused_in_the_words_of_the_server(
    spec: dict[str, Any], errors: list[str]
) -> None:
    assert shown(spec) == errors


def rules(*texts: str, **more: Any) -> Rules:
    listed = [{"rule": text, **more} for text in texts]
    return Rules(
        {"type": "object", "properties": {"spec": {**SPEC, "x-kubernetes-validations": listed}}}
    )


def broken(checked: Rules, new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    before = None if old is None else {"spec": old}
    return [str(error) for error in checked.check({"spec": new}, before)]


def test_a_broken_rule_says_its_message() -> None:
    checked = rules("self.replicas <= 3", message="too many replicas")
    assert broken(checked, {"replicas": 3}) == []
    assert broken(checked, {"replicas": 4}) == ["spec: Invalid value: too many replicas"]


def test_a_rule_without_message_is_quoted_and_an_expression_may_make_one() -> None:
    assert broken(rules("self.replicas <= 3"), {"replicas": 4}) == [
        "spec: Invalid value: failed rule: self.replicas <= 3"
    ]
    said = rules("self.replicas <= 3", messageExpression="'not ' + string(self.replicas)")
    assert broken(said, {"replicas": 4}) == ["spec: Invalid value: not 4"]


def test_a_missing_key_is_an_error_of_its_own() -> None:
    assert broken(rules("self.replicas <= self.max", message="m"), {"replicas": 1}) == [
        'spec: Invalid value: "object": no such key: max evaluating rule: m'
    ]


def test_transition_rules_wait_for_an_old_value() -> None:
    checked = rules("self.size == oldSelf.size", message="size is immutable")
    assert broken(checked, {"size": "small"}) == []
    assert broken(checked, {"size": "large"}, {"size": "large"}) == []
    assert broken(checked, {"size": "small"}, {"size": "large"}) == [
        "spec: Invalid value: size is immutable"
    ]


def test_items_of_map_lists_are_compared_with_the_old_item_of_the_same_key() -> None:
    item = {
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.kept == oldSelf.kept", "message": "no"}],
    }
    checked = Rules(
        {
            "properties": {
                "spec": {"properties": {"pods": {**SPEC["properties"]["pods"], "items": item}}}
            }
        }
    )
    old = {"pods": [{"uid": "a", "kept": True}, {"uid": "b", "kept": False}]}
    new = {
        "pods": [{"uid": "b", "kept": True}, {"uid": "c", "kept": True}, {"uid": "a", "kept": True}]
    }
    assert broken(checked, new, old) == ["spec.pods[0]: Invalid value: no"]


def test_field_path_and_reason_of_a_rule_are_kept() -> None:
    checked = rules("false", message="no", fieldPath=".size", reason="FieldValueForbidden")
    assert broken(checked, {"size": "small"}) == ["spec.size: Forbidden: no"]


def test_functions_of_kubernetes_and_odd_names_are_known() -> None:
    raw = {
        "type": "object",
        "properties": {"a-b": {"type": "string"}, "namespace": {"type": "string"}},
        "x-kubernetes-validations": [
            {"rule": "self.a__dash__b.lowerAscii() == 'x'"},
            {"rule": "self.__namespace__.split(',').size() == 2"},
        ],
    }
    assert Rules(raw).check({"a-b": "X", "namespace": "a,b"}, None) == []
