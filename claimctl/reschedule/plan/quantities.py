"""Quantities of Kubernetes as exact whole numbers, by the rules of apimachinery's ``resource``.

The scheduler computes with milli-CPU for cpu and with whole units for everything else, and rounds
up (``MilliValue`` and ``Value``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil

from claimctl.reschedule.shapes.scheduling import Quantity, ResourceList

CPU, MEMORY, PODS = "cpu", "memory", "pods"

_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_UNITS = {suffix: Fraction(f"1e{power}") for suffix, power in _POWERS.items()}
_UNITS |= {f"{letter}i": Fraction(1 << 10 * power) for power, letter in enumerate("KMGTPE", 1)}


def parse(quantity: Quantity) -> Fraction:
    """The exact value.

    Raises:
        ValueError: this is no quantity.
    """
    text = str(Decimal(repr(quantity))) if isinstance(quantity, float) else str(quantity)
    found = _NUMBER.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a quantity: a number such as 2, 500m or 4Gi is expected")
    number, exponent, suffix = found.groups()
    return Fraction(number + (exponent or "")) * _UNITS[suffix or ""]


@lru_cache(maxsize=65_536)
def amount(resource: str, quantity: Quantity) -> int:
    """The quantity as the scheduler counts it: milli-CPU for cpu, units otherwise, rounded up.

    Raises:
        ValueError: this is no quantity.
    """
    value = parse(quantity)
    return ceil(value * 1000 if resource == CPU else value)


def amounts(resources: ResourceList | None) -> dict[str, int]:
    """The whole numbers of a list of resources; empty if there is none."""
    return {name: amount(name, quantity) for name, quantity in (resources or {}).items()}


def add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, number in more.items():
        total[name] = total.get(name, 0) + number


def raise_to(total: dict[str, int], least: Mapping[str, int]) -> None:
    """Make each number in ``total`` at least the one in ``least``."""
    for name, number in least.items():
        if number > total.get(name, 0):
            total[name] = number
