"""Typed objects and optional fields become CEL that the library reads."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.admission.authorizing import FUNCTIONS
from kube_in_process.text.cel import Expression
from kube_in_process.text.cel_source import readable

OBJECT = {"x": {"y": "w"}, "l": [7], "m": {"a/b": 1}}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("Object{spec: Object.spec{a: 1, b: {'c': 2}}}", {"spec": {"a": 1, "b": {"c": 2}}}),
        (
            "[JSONPatch{op: 'add', path: '/a', value: Object.spec.b{c: has(object.x) ? 1 : 2}}]",
            [{"op": "add", "path": "/a", "value": {"c": 1}}],
        ),
        ("'Object{a: b}' + ' .?c'", "Object{a: b} .?c"),
        ("object.?a.?b.orValue(3)", 3),
        ("object.?x.y.orValue('')", "w"),
        ("object.?x['z'].hasValue()", False),
        ("object.m[?'a/b'].orValue(0) + object.?l[0].value()", 8),
        ("{'k': object.?x.?y.orValue('')}.k == object.x.y", True),
    ],
)
def test_the_value_is_that_of_the_source(source: str, value: Any) -> None:
    assert Expression(readable(source), FUNCTIONS)({"object": OBJECT}) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("string(true) + '%s-%.1f'.format(['a', 1.25])", "truea-1.2"),
        ("'a,b,a'.split(',').distinct().size()", 2),
        ("sets.contains([1, 2], [2]) && !sets.intersects([1], [2])", True),
        ("lists.range(3).slice(1, 3)", [1, 2]),
        ("quantity('1Gi').isGreaterThan(quantity('1Mi')) && !isQuantity('x')", True),
        ("jsonpatch.escapeKey('a/b~c')", "a~1b~0c"),
        ("[[3], [1]].flatten().sort()", [1, 3]),
    ],
)
def test_functions_of_kubernetes_are_there(source: str, value: Any) -> None:
    assert Expression(source)({}) == value
