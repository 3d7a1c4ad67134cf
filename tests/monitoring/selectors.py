"""The selectors of PromQL expressions, and which series of a scrape they select."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import promql_parser as promql
from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, slots=True)
class Selector:
    """One selector: a metric's name, and its matchers as (label, operator, value)."""

    name: str
    matchers: tuple[tuple[str, str, str], ...] = ()

    def selects(self, name: str, labels: dict[str, str]) -> bool:
        return name == self.name and all(
            _holds(labels.get(label, ""), operator, value)
            for label, operator, value in self.matchers
        )


def parsed(expression: str) -> Any:
    """The syntax tree of an expression; raises ValueError if it is not PromQL."""
    return promql.parse(expression.replace("$__rate_interval", "1m"))


def selectors(expression: str) -> list[Selector]:
    return list(_walk(parsed(expression)))


def _walk(node: Any) -> Iterator[Selector]:
    match node:
        case promql.VectorSelector():
            matchers = ((each.name, str(each.op), each.value) for each in node.matchers.matchers)
            yield Selector(node.name or "", tuple(matchers))
        case promql.MatrixSelector():
            yield from _walk(node.vector_selector)
        case promql.BinaryExpr():
            yield from _walk(node.lhs)
            yield from _walk(node.rhs)
        case promql.Call():
            for argument in node.args:
                yield from _walk(argument)
        case promql.AggregateExpr() | promql.ParenExpr() | promql.UnaryExpr():
            yield from _walk(node.expr)
        case promql.SubqueryExpr():
            yield from _walk(node.expr)


def _holds(found: str, operator: str, value: str) -> bool:
    kind = operator.rpartition(".")[2]
    matched = re.fullmatch(value, found) is not None if kind in ("Re", "NotRe") else found == value
    return matched if kind in ("Equal", "Re") else not matched


def series(scraped: str) -> list[tuple[str, dict[str, str]]]:
    """The series of a scrape: names and labels."""
    return [
        (sample.name, sample.labels)
        for family in text_string_to_metric_families(scraped)
        for sample in family.samples
    ]
