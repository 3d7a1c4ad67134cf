"""CEL as Kubernetes speaks it: its functions, and the words for what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.text.cel import EvaluationError, compiled

SELF = {"name": "A-b", "size": 2, "items": [3, 1], "labels": {"a": "x"}}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("self.size + 1", 3),
        ("self.name.lowerAscii()", "a-b"),
        ("self.name.split('-')", ["A", "b"]),
        ("'ab'.split('')", ["a", "b"]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("['a', 'b'].join('-')", "a-b"),
        ("self.name.indexOf('b')", 2),
        ("self.items.indexOf(1)", 1),
        ("self.name.substring(2)", "b"),
        ("self.name.replace('A', 'c')", "c-b"),
        ("'x1y2'.find('[0-9]')", "1"),
        ("self.items.isSorted()", False),
        ("self.items.sum()", 4),
        ("self.items.min()", 1),
        ("has(self.none)", False),
        ("'a' in self.labels", True),
        ("self.items.exists(each, each > 2)", True),
        ("duration('90m') > duration('1h')", True),
        ("quantity('2Gi').compareTo(quantity('1500M'))", 1),
        ("size('ä') + 'é'.size()", 2),
        ("'ÄB'.lowerAscii() + 'äb'.upperAscii()", "ÄbäB"),
        ("'a,b'.split(',', 0)", []),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("'tacocat'.indexOf('a', 3)", 5),
        ("'tacocat'.lastIndexOf('a', 3)", 1),
        ("'abc'.charAt(3)", ""),
        ("bool('true')", True),
        ("string(1234567.0) + string(0.00001) + string(100.0)", "1.234567e+061e-05100"),
        ("string(timestamp('2024-01-01T00:00:00.5Z'))", "2024-01-01T00:00:00.5Z"),
        ("string(duration('1h')) + string(duration('100ms'))", "3600s0.1s"),
        ("string(true) + string(b'x')", "truex"),
        (
            "'%s %s'.format([[1, 2.5, null], {'b': 'x', 'a': [1]}])",
            '[1, 2.500000, null] {"a":[1], "b":"x"}',
        ),
        ("'%f %.1f %e'.format([1234567.5, 0.25, 0.00012])", "1,234,567.500000 0.2 1.200000×10⁻⁰⁴"),
        ("'%x %X %b %o %%'.format(['hi', 255, true, 8])", "6869 FF 1 10 %"),
        ("'%s %s'.format([duration('90s'), [duration('90s')]])", '90s [duration("90s")]'),
    ],
)
def test_an_expression_has_a_value(source: str, value: Any) -> None:
    assert compiled(source)({"self": SELF}) == value


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("self.none == 1", "no such key: none"),
        ("self.items[5] == 1", "index out of bounds: 5"),
        ("self.name + 1 == 2", "no such overload"),
        ("self.size / 0 == 1", "division by zero"),
        ("self.size % 0 == 1", "modulus by zero"),
        ("self.size + 9223372036854775807 == 1", "integer overflow"),
        ("int(self.name) == 1", "type conversion error from 'string' to 'int'"),
        ("bool(self.name)", "type conversion error from 'string' to 'bool'"),
        (
            "timestamp(self.name) == timestamp(self.name)",
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        ("string(self.items) == ''", "no such overload"),
        ("self.name.substring(5) == ''", "index out of range: 5"),
        ("self.name.substring(-1) == ''", "index out of range: -1"),
        ("self.name.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("self.name.charAt(4) == ''", "index out of range: 4"),
        ("self.name.indexOf('b', -1) == 1", "index out of range: -1"),
        ("self.items.slice(0, 5) == []", "cannot slice(0, 5), list is length 2"),
        ("self.items.slice(-1, 1) == []", "cannot slice(-1, 1), negative indexes not supported"),
        ("self.items.filter(each, false).min() == 1", "min called on empty list"),
        ("'%s %s'.format(self.labels.map(each, each)) == ''", "index 1 out of range"),
        (
            "'%d'.format([self.name]) == ''",
            "error during formatting: decimal clause can only be used on integers, was given "
            "string",
        ),
        ("(self.name + '%').format([]) == ''", "unexpected end of string"),
    ],
)
def test_an_expression_that_fails_says_why_in_the_servers_words(source: str, words: str) -> None:
    with pytest.raises(EvaluationError) as failed:
        compiled(source)({"self": SELF})
    assert str(failed.value) == words


def test_a_value_of_before_is_not_seen_again() -> None:
    both = compiled("has(self.a) ? self.a : 0")
    assert (both({"self": {"a": 1}}), both({"self": {}})) == (1, 0)


def test_what_is_no_expression_is_refused_in_the_parsers_words() -> None:
    with pytest.raises(ValueError, match="ERROR") as refused:
        compiled("a b")
    assert str(refused.value) == (
        "ERROR: <input>:1:3: Syntax error: extraneous input 'b' expecting <EOF>\n | a b\n | ..^"
    )
