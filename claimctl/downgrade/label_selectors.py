"""Label selectors, by the rules of apimachinery's ``labels`` package: parse and match."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_NAME}"
_VALUE = rf"(?:{_NAME})?"
_EQUALITY = re.compile(rf"\s*({_KEY})\s*(==|=|!=)\s*({_VALUE})\s*")
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
_EXISTENCE = re.compile(rf"\s*(!?)\s*({_KEY})\s*")
_COMMA_OUTSIDE_PARENTHESES = re.compile(r",(?![^()]*\))")
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """``operator`` is In, NotIn, Exists or DoesNotExist; only the first two have values."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


Selector = tuple[Requirement, ...]
"""All requirements must be met."""


def parse(text: str) -> Selector:
    """Read a selector as kubectl's ``-l`` takes it. An empty text selects everything.

    Raises:
        ValueError: the text is no label selector; the message names the wrong part.
    """
    if not text.strip():
        return ()
    parts = _COMMA_OUTSIDE_PARENTHESES.split(text)
    return tuple(map(_requirement, parts))


def _requirement(text: str) -> Requirement:
    if found := _EQUALITY.fullmatch(text):
        key, sign, value = found.groups()
        return Requirement(key=key, operator=_OPERATORS[sign], values=(value,))
    if found := _SET.fullmatch(text):
        key, word, inside = found.groups()
        values = tuple(each.strip() for each in inside.split(","))
        if all(re.fullmatch(_VALUE, each) for each in values):
            return Requirement(key=key, operator=_OPERATORS[word], values=values)
    if found := _EXISTENCE.fullmatch(text):
        no, key = found.groups()
        return Requirement(key=key, operator="DoesNotExist" if no else "Exists")
    raise ValueError(
        f"{text.strip()!r} is not a label requirement: key=value, key!=value, key in (a,b), "
        "key notin (a,b), key or !key is expected"
    )


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether the labels meet every requirement. An absent label meets NotIn."""
    return all(_meets(each, labels) for each in selector)


def _meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case _:
            return value is None
