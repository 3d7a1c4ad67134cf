"""Label selectors, by the rules of apimachinery: as objects have them, and as texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from claimctl.wire.base import Wire

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_NAME}"
_VALUE = rf"(?:{_NAME})?"
_EQUALITY = re.compile(rf"\s*({_KEY})\s*(==|=|!=)\s*({_VALUE})\s*")
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
_EXISTENCE = re.compile(rf"\s*(!?)\s*({_KEY})\s*")
_COMMA_OUTSIDE_PARENTHESES = re.compile(r",(?![^()]*\))")
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn"}


class LabelSelectorRequirement(Wire, frozen=True, kw_only=True):
    """``operator`` is In, NotIn, Exists or DoesNotExist; only the first two have values."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True, kw_only=True):
    """metav1.LabelSelector. An empty one selects everything, an absent one nothing."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


def parse(text: str) -> LabelSelector:
    """Read a selector as kubectl's ``-l`` takes it. An empty text selects everything.

    Raises:
        ValueError: the text is no label selector; the message names the wrong part.
    """
    if not text.strip():
        return LabelSelector()
    parts = _COMMA_OUTSIDE_PARENTHESES.split(text)
    return LabelSelector(match_expressions=tuple(map(_requirement, parts)))


def _requirement(text: str) -> LabelSelectorRequirement:
    if match := _EQUALITY.fullmatch(text):
        key, sign, value = match.groups()
        return LabelSelectorRequirement(key=key, operator=_OPERATORS[sign], values=(value,))
    if match := _SET.fullmatch(text):
        key, word, inside = match.groups()
        values = tuple(value.strip() for value in inside.split(","))
        if all(re.fullmatch(_VALUE, value) for value in values):
            return LabelSelectorRequirement(key=key, operator=_OPERATORS[word], values=values)
    if match := _EXISTENCE.fullmatch(text):
        no, key = match.groups()
        return LabelSelectorRequirement(key=key, operator="DoesNotExist" if no else "Exists")
    raise ValueError(
        f"{text.strip()!r} is not a label requirement: key=value, key!=value, key in (a,b), "
        "key notin (a,b), key or !key is expected"
    )


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether the labels meet every requirement. An absent selector selects nothing."""
    if selector is None:
        return False
    wanted = selector.match_labels or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(rule, labels) for rule in selector.match_expressions
    )


def _meets(rule: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """An absent label meets NotIn. An operator that is not known selects nothing."""
    value = labels.get(rule.key)
    match rule.operator:
        case "In":
            return value in rule.values
        case "NotIn":
            return value not in rule.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
