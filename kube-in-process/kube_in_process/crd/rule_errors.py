"""The errors of CEL rules in a definition: their syntax, their types and their cost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube_in_process import errors
from kube_in_process.crd.rule_types import REQUEST, most_items, rule_type, smallest
from kube_in_process.errors import FieldError
from kube_in_process.text.cel_checker import examined
from kube_in_process.text.cel_cost import cost
from kube_in_process.text.cel_type import DYN, CelType

Raw = Mapping[str, Any]

_BUDGET, _WHOLE_BUDGET = 10_000_000, 100_000_000
_REASONS = (
    *("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"),
)
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)
_STEP = re.compile(r"\.([A-Za-z_][\w]*)|\[(?:'([^']*)'|\"([^\"]*)\")\]")


@dataclass(slots=True)
class _Costs:
    """The rules that cost much, and the cost of all rules."""

    whole: int = 0
    paths: list[tuple[int, str]] = field(default_factory=list)

    def add(self, amount: int, path: str) -> None:
        self.whole += amount
        if amount >= _WHOLE_BUDGET / 100:
            self.paths.append((amount, path))


def rule_errors(raw: Raw, path: str) -> list[FieldError]:
    """The errors of all rules of a schema. Those of inner rules come first."""
    costs = _Costs()
    field_errors = list(_below(raw, path, costs, 1, root=True))
    if costs.whole > _WHOLE_BUDGET:
        text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3"
        most = sorted(costs.paths, key=lambda pair: -pair[0])[:4]
        field_errors += [errors.forbidden_field(where, f"{text} schema") for _, where in most]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        field_errors.append(
            errors.forbidden_field(path, _exceeds(what, costs.whole / _WHOLE_BUDGET))
        )
    return field_errors


def _exceeds(what: str, factor: float) -> str:
    shown = "more than 100" if factor > 100 else f"{factor:.1f}" if factor >= 1.5 else f"{factor:f}"
    return f"{what} exceeds budget by factor of {shown}x {_ADVICE}"


def _below(
    raw: Raw, path: str, costs: _Costs, copies: int | None, *, root: bool = False
) -> Iterator[FieldError]:
    """``copies`` is how many values there are at most; None if only a request bounds it."""
    for name, below in (raw.get("properties") or {}).items():
        yield from _below(below, f"{path}.properties[{name}]", costs, copies)
    for key, limit in (("items", "maxItems"), ("additionalProperties", "maxProperties")):
        if isinstance(raw.get(key), dict):
            bounded = copies is not None and limit in raw
            inner = (copies or 1) * most_items(raw) if bounded else None
            yield from _below(raw[key], f"{path}.{key}", costs, inner)
    rules = raw.get("x-kubernetes-validations") or ()
    seen = rule_type(raw, root=root) if rules else None
    many = copies if copies is not None else REQUEST // (smallest(raw) + 1)
    for index, rule in enumerate(rules):
        place = f"{path}.x-kubernetes-validations[{index}]"
        yield from _texts(rule, raw, place)
        yield from _rule(rule, place, seen or DYN, _Spending(costs, many))


def _texts(rule: Raw, raw: Raw, path: str) -> Iterator[FieldError]:
    """The errors of the message, the reason and the path of the field."""
    message, reason, where = rule.get("message"), rule.get("reason"), rule.get("fieldPath")
    if message and not message.strip():
        yield errors.invalid_value(f"{path}.message", message, "must be non-empty if specified")
    elif message and "\n" in message.strip():
        yield errors.invalid_value(f"{path}.message", message, "must not contain line breaks")
    if reason is not None and reason not in _REASONS:
        yield errors.not_supported(f"{path}.reason", reason, _REASONS)
    if where and not _leads_somewhere(where, raw):
        yield errors.invalid_value(f"{path}.fieldPath", where, "must be a valid path")


def _leads_somewhere(path: str, raw: Raw) -> bool:
    at, below = 0, raw
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return False
        name = next(group for group in match.groups() if group is not None)
        properties, additional = below.get("properties") or {}, below.get("additionalProperties")
        if name not in properties and not isinstance(additional, dict):
            return False
        below, at = properties.get(name) or additional or {}, match.end()
    return True


@dataclass(frozen=True, slots=True)
class _Spending:
    costs: _Costs
    copies: int


def _rule(rule: Raw, path: str, seen: CelType, spending: _Spending) -> Iterator[FieldError]:
    source, where = rule.get("rule") or "", f"{path}.rule"
    if not source.strip():
        yield errors.required(where, "rule is not specified")
        return
    problem, kind, amount = _examined(source, seen, bool(rule.get("optionalOldSelf")))
    whole = amount * spending.copies
    spending.costs.add(whole, where)
    if whole > _BUDGET:
        yield errors.forbidden_field(where, _exceeds("estimated rule cost", whole / _BUDGET))
    if problem:
        yield _invalid(where, rule, f"compilation failed: {problem}")
    elif kind.name not in ("bool", "dyn"):
        yield _invalid(where, rule, "cel expression must evaluate to a bool")
    message, where = rule.get("messageExpression") or "", f"{path}.messageExpression"
    if message.strip():
        problem, kind, _ = _examined(message, seen, bool(rule.get("optionalOldSelf")))
        if problem:
            yield _invalid(where, rule, f"messageExpression compilation failed: {problem}")
        elif kind.name not in ("string", "dyn"):
            yield _invalid(where, rule, "messageExpression must evaluate to a string")


def _examined(source: str, seen: CelType, optional: bool) -> tuple[str, CelType, int]:
    """The error text of an expression, its type, and its cost."""
    names = {"self": seen, "oldSelf": DYN if optional else seen}
    rule = examined(source, names)
    spent = 0 if rule.problem or rule.tree is None else cost(rule.tree, rule.types)
    return rule.problem, rule.kind, spent


def _invalid(path: str, rule: Raw, text: str) -> FieldError:
    shown = json.dumps(
        {
            "Rule": rule.get("rule") or "",
            "Message": rule.get("message") or "",
            "MessageExpression": rule.get("messageExpression") or "",
            "Reason": rule.get("reason"),
            "FieldPath": rule.get("fieldPath") or "",
            "OptionalOldSelf": rule.get("optionalOldSelf"),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )
    for letter in "<>&":
        shown = shown.replace(letter, f"\\u{ord(letter):04x}")
    return errors.invalid_text(path, shown, text)
