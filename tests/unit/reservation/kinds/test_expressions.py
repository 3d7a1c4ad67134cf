"""CEL expressions over one object."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.reservation.kinds.expressions import (
    ExpressionError,
    compiled,
    reads_status,
    subject_of,
)

OBJECT = subject_of(
    {"spec": {"replicas": 0, "suspend": None}, "status": {"phases": [{"type": "A"}, {}]}}
)


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
    assert compiled(side_by_side).value({"a": [1]})


def test_an_object_without_parts_has_empty_ones() -> None:
    assert subject_of({}) == subject_of(None) == {"metadata": {}, "spec": {}, "status": {}}


def test_what_may_read_the_status() -> None:
    assert reads_status("self.status.phase == 'x'")
    assert reads_status("self['status'].phase == 'x'")
    assert not reads_status("self.spec.replicas == 0")
