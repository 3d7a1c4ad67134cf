"""Label and field selectors: parsed once, then applied to objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kube_in_process.text import names

_UNABLE = "unable to parse requirement: "
Labels = Mapping[str, str]
_TOKEN = re.compile(r"\s*(==|!=|=|!|,|\(|\)|<|>|[^\s=!,()<>]+)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement. ``operator`` is one of in, notin, exists, absent, gt, lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        if self.operator == "exists":
            return value is not None
        if self.operator == "absent":
            return value is None
        if self.operator == "notin":
            return value is None or value not in self.values
        if self.operator == "in":
            return value is not None and value in self.values
        return value is not None and _compares(value, self.operator, self.values[0])


def _compares(value: str, operator: str, bound: str) -> bool:
    try:
        return int(value) > int(bound) if operator == "gt" else int(value) < int(bound)
    except ValueError:
        return False


class SelectorError(Exception):
    """A selector cannot be parsed. The text is the server's."""


class _Tokens:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self._next += 1
        return token


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """The requirements of a label selector.

    Raises:
        SelectorError: with the text of the server.
    """
    tokens = _Tokens(text)
    requirements: list[Requirement] = []
    while tokens.peek():
        requirements.append(_requirement(tokens))
        separator = tokens.take()
        if separator == "," and not tokens.peek():
            raise SelectorError("found '', expected: identifier after ','")
        if separator == "," and tokens.peek() == ",":
            raise SelectorError("found ',', expected: identifier after ','")
        if separator not in (",", ""):
            raise SelectorError(f"found '{separator}', expected: ',' or 'end of string'")
    return tuple(requirements)


def _requirement(tokens: _Tokens) -> Requirement:
    first = tokens.take()
    if first == "!":
        if tokens.peek() == "!":
            raise SelectorError(f"{_UNABLE}found '!', expected: identifier")
        return Requirement(_key(tokens.take()), "absent")
    key = _key(first)
    operator = tokens.peek()
    if operator in ("", ","):
        return Requirement(key, "exists")
    tokens.take()
    if operator in ("=", "==", "!="):
        return Requirement(key, "notin" if operator == "!=" else "in", (_exact(tokens, key),))
    if operator in ("in", "notin"):
        return Requirement(key, operator, _values(tokens, key))
    if operator in (">", "<"):
        return Requirement(key, "gt" if operator == ">" else "lt", (_number(tokens, key),))
    raise SelectorError(f"{_UNABLE}found '{operator}', expected: in, notin, =, ==, !=, gt, lt")


def _key(token: str) -> str:
    if token in ("", ",", "(", ")", "=", "==", "!=", "<", ">"):
        raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
    wrong = names.qualified_name(token)
    if wrong:
        shown = "; ".join(wrong)
        raise SelectorError(f'{_UNABLE}<nil>: Invalid value: "{token}": {shown}')
    return token


def _exact(tokens: _Tokens, key: str) -> str:
    if tokens.peek() in ("", ","):
        return ""
    return _value(tokens.take(), key)


def _value(token: str, key: str) -> str:
    if token in ("=", "==", "!=", "(", ")"):
        raise SelectorError(f"found '{token}', expected: identifier")
    wrong = names.label_value(token)
    if wrong:
        shown = "; ".join(wrong)
        raise SelectorError(f'{_UNABLE}values[0][{key}]: Invalid value: "{token}": {shown}')
    return token


def _values(tokens: _Tokens, key: str) -> tuple[str, ...]:
    opening = tokens.take()
    if opening != "(":
        raise SelectorError(f"{_UNABLE}found '{opening}' expected: '('")
    values: list[str] = []
    while tokens.peek() not in (")", ""):
        token = tokens.take()
        if token != ",":
            values.append(_value(token, key))
        elif tokens.peek() in (",", ")"):
            values.append("")
    closing = tokens.take()
    if closing != ")":
        expected = "',' or ')'" if values else "',', ')' or identifier"
        raise SelectorError(f"{_UNABLE}found '{closing}', expected: {expected}")
    return tuple(values) or ("",)


def _number(tokens: _Tokens, key: str) -> str:
    token = tokens.take()
    if not re.fullmatch(r"-?\d+", token):
        raise SelectorError(
            f"{_UNABLE}values[0][{key}]: Invalid value: \"{token}\": for 'Gt', 'Lt' operators, "
            "the value must be an integer"
        )
    return token


@dataclass(frozen=True, slots=True)
class FieldTerm:
    key: str
    value: str
    equal: bool


def parse_fields(text: str) -> tuple[FieldTerm, ...]:
    """The terms of a field selector.

    Raises:
        SelectorError: a term without an operator.
    """
    terms: list[FieldTerm] = []
    for part in filter(None, text.split(",")):
        for operator in ("!=", "==", "="):
            key, sign, value = part.partition(operator)
            if sign:
                terms.append(FieldTerm(key, value, operator != "!="))
                break
        else:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
    return tuple(terms)


@dataclass(frozen=True, slots=True)
class Selector:
    """Both selectors of a request. ``fields_of`` returns an object's selectable fields."""

    labels: tuple[Requirement, ...]
    fields: tuple[FieldTerm, ...]
    fields_of: Callable[[dict[str, object]], Mapping[str, str]]

    @property
    def everything(self) -> bool:
        return not self.labels and not self.fields

    def matches(self, obj: dict[str, object]) -> bool:
        if self.everything:
            return True
        metadata = obj.get("metadata")
        labels = metadata.get("labels") or {} if isinstance(metadata, dict) else {}
        if not all(requirement.matches(labels) for requirement in self.labels):
            return False
        if not self.fields:
            return True
        values = self.fields_of(obj)
        return all((values.get(t.key, "") == t.value) is t.equal for t in self.fields)


def selects(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Whether a metav1.LabelSelector matches the labels; an empty one matches all."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(
        Requirement(
            expression["key"],
            _EXPRESSIONS[expression["operator"]],
            tuple(expression.get("values") or ()),
        ).matches(labels)
        for expression in selector.get("matchExpressions") or []
    )


_EXPRESSIONS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}
