"""CEL expressions over one object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claimctl.reservation.kinds.expressions import (
    ExpressionError,
    compiled,
    reads_status,
)
from claimctl.reservation.kinds.subjects import Subject, subject_of


def over(document: Any) -> Subject:
    return subject_of(json.dumps(document).encode(), ["self"])


OBJECT = over({"spec": {"replicas": 0, "suspend": None}, "status": {"phases": [{"type": "A"}, {}]}})


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("self.spec.replicas == 0", True),
        ("has(self.spec.suspend)", False),
        ("has(self.metadata.deletionTimestamp)", False),
        ("self.status.phases.exists(p, has(p.type) && p.type in ['A', 'B'])", True),
        ("self.spec.replicas", 0),
        ("'((((' == self.spec.name || true", True),
    ],
)
def test_values(source: str, value: Any) -> None:
    assert compiled(source).value(OBJECT) == value


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("self.spec.name == 'x'", "fails: no such key: name"),
        ("self.status.phases.exists(p, p.type == 'B')", "fails: no such key: type"),
        ("self.spec.replicas > 'x'", "fails: No such overload"),
        ("1 / self.spec.replicas == 1", "fails: division by zero"),
        ("other == 1", "fails: Undefined variable or function: 'other'"),
    ],
)
def test_an_expression_that_fails_says_so_in_one_line(source: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as failure:
        compiled(source).value(OBJECT)
    assert str(failure.value).startswith(problem)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("self.spec.", "is not CEL: "),
        ("", "is not CEL: "),
        ("self.a == 1 ||" * 100, "has more than 1000 characters"),
        ("(" * 51 + "1" + ")" * 51, "has more than 50 brackets inside each other"),
        (
            "self.a.all(x, x.b.exists(y, y.c.map(z, z.d) == []))",
            "has more than 2 macros inside each other",
        ),
    ],
)
def test_an_expression_that_is_not_valid(source: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as failure:
        compiled(source)
    assert str(failure.value).startswith(problem)
    assert failure.value.always


def test_macros_beside_each_other_are_no_deeper() -> None:
    side_by_side = " && ".join(["self.a.all(x, x == 1)"] * 5)
    assert compiled(side_by_side).value(over({"a": [1]}))


def test_what_may_read_the_status() -> None:
    assert reads_status("self.status.phase == 'x'")
    assert reads_status("self['status'].phase == 'x'")
    assert not reads_status("self.spec.replicas == 0")


FLAT: Any = {"spec": {"xs": list(range(3000)), "one": [{"ys": list(range(3000))}]}}


@pytest.mark.parametrize(
    ("source", "takes"),
    [
        ("self.spec.xs.all(x, x >= 0)", True),
        ("self.spec.xs.exists(x, x < 0) || self.spec.xs.all(x, x >= 0)", True),
        ("self.spec.one.all(x, has(x.ys)) && size(self.spec.xs) > 0", True),
        ("self.spec.xs.all(x, size(self.spec.xs) > 0)", False),
        ("self.spec.xs.all(x, x in self.spec.xs)", False),
        ("self.spec.xs.map(x, x).size() > 0", False),
        ("self.spec.xs.filter(x, x > 0).size() > 0", False),
        ("self.spec.xs.map(x, self.spec.xs) != []", False),
        ("self.spec.one.all(x, x.ys.all(y, x == x))", False),
        ("self.spec.one.map(x, x.ys.map(y, x)) != []", False),
    ],
)
def test_an_expression_is_refused_for_an_object_that_is_too_large_for_it(
    source: str, takes: bool
) -> None:
    expression = compiled(source)
    if takes:
        assert expression.value(over(FLAT)) is True
        return
    with pytest.raises(ExpressionError) as failure:
        expression.value(over(FLAT))
    told = "would take too long: 6006 values in the fields that the rule reads, 3000 in one list"
    assert str(failure.value) == told
    small = {"spec": {"xs": list(range(30)), "one": [{"ys": list(range(30))}]}}
    assert expression.value(over(small)) is True


def test_a_long_text_counts_as_many_values() -> None:
    document = {"spec": {"xs": ["x" * 1000] * 100}}
    with pytest.raises(ExpressionError, match="would take too long"):
        compiled("self.spec.xs.map(x, self.spec.xs).size() > 0").value(over(document))
