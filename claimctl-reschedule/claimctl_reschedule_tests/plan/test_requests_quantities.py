"""Quantities are exact, and rounded up as the scheduler does it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from claimctl_reschedule.plan.requests import add, amount, amounts, parse, raise_to
from claimctl_reschedule.shapes.scheduling import Quantity


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("1", 1),
        (2, 2),
        (0.5, Fraction(1, 2)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("-1", -1),
        ("100m", Fraction(1, 10)),
        ("1u", Fraction(1, 10**6)),
        ("3n", Fraction(3, 10**9)),
        ("2k", 2000),
        ("2M", 2 * 10**6),
        ("1E", 10**18),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("1Ei", 2**60),
        ("12e6", 12 * 10**6),
        ("1E3", 1000),
        ("5e-1", Fraction(1, 2)),
    ],
)
def test_a_quantity_is_read_exactly(quantity: Quantity, value: Fraction | int) -> None:
    assert parse(quantity) == value


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1gi", "1K", "1.2.3", "1e", "0x1", "1Gi3"])
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse(text)


@pytest.mark.parametrize(
    ("resource", "quantity", "number"),
    [
        ("cpu", "1500m", 1500),
        ("cpu", "2", 2000),
        ("cpu", "1u", 1),
        ("memory", "1Gi", 2**30),
        ("memory", "100m", 1),
        ("example.com/gpu", "3", 3),
    ],
)
def test_cpu_counts_in_thousandths_and_all_is_rounded_up(
    resource: str, quantity: str, number: int
) -> None:
    assert amount(resource, quantity) == number


def test_lists_of_resources_are_added_and_raised() -> None:
    total = amounts({"cpu": "1", "memory": "1Ki"})
    add(total, {"cpu": 500, "pods": 1})
    assert total == {"cpu": 1500, "memory": 1024, "pods": 1}
    raise_to(total, {"cpu": 100, "memory": 2048, "gpu": 1})
    assert total == {"cpu": 1500, "memory": 2048, "pods": 1, "gpu": 1}
    assert amounts(None) == {}
