"""The server's form of quantities: ``1500m``, ``1k``, ``40Gi``."""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal, localcontext

_PARTS = re.compile(r"([+-]?[0-9.]+)(.*)\Z")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_NANO = Decimal("1e-9")


def canonical(value: object) -> str:
    """The canonical text of a valid quantity, with at most nine decimal places; null is 0."""
    if value is None:
        return "0"
    with localcontext() as context:
        context.prec = 60
        return _canonical(str(value))


def number(value: object) -> Decimal:
    """The value of a quantity; None is 0.

    Raises:
        ValueError, ArithmeticError: it is no quantity.
    """
    if value is None:
        return Decimal(0)
    match = _PARTS.match(str(value))
    if match is None:
        raise ValueError(f"{value} is no quantity")
    digits, suffix = Decimal(match.group(1)), match.group(2)
    if suffix in _BINARY:
        return digits * Decimal(1024) ** _BINARY[suffix]
    if suffix in _DECIMAL:
        return digits.scaleb(_DECIMAL[suffix])
    return digits.scaleb(int(suffix[1:]))


def _canonical(text: str) -> str:
    amount = number(text)
    suffix = text.lstrip("+-0123456789.")
    if amount == 0:
        return "0"
    if suffix in _BINARY and abs(amount) >= 1024:
        return _binary(amount)
    amount = amount.quantize(_NANO, rounding=ROUND_UP)
    exponents = [*range(-9, 19, 3)]
    if suffix not in _BINARY and suffix not in _DECIMAL:
        return _exponent(amount, exponents)
    for name in reversed(_DECIMAL):
        scaled = amount.scaleb(-_DECIMAL[name])
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{name}"
    return text


def _binary(amount: Decimal) -> str:
    for name, power in reversed(_BINARY.items()):
        scaled = amount / Decimal(1024) ** power
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{name}"
    if amount == amount.to_integral_value():
        return str(int(amount))
    return _canonical(str(amount.quantize(_NANO, rounding=ROUND_UP).normalize()))


def _exponent(amount: Decimal, exponents: list[int]) -> str:
    for exponent in reversed(exponents):
        scaled = amount.scaleb(-exponent)
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}e{exponent}" if exponent else str(int(scaled))
    return str(amount)
