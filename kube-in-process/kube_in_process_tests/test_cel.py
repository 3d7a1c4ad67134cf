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
