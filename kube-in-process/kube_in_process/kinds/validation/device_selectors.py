"""The CEL expressions that select devices."""

from __future__ import annotations

from kube_in_process.text.cel_checker import examined
from kube_in_process.text.cel_type import ANY, BOOL, STRING, UNKNOWN, CelType, holds, runtime_name


def _by_domain(value: CelType) -> CelType:
    return CelType("map", (STRING, CelType("map", (STRING, value))))


_DEVICE = CelType(
    "kubernetes.DRADevice",
    fields={
        "driver": STRING,
        "allowMultipleAllocations": BOOL,
        "attributes": _by_domain(ANY),
        "capacity": _by_domain(CelType("kubernetes.Quantity")),
    },
)
_VALUES = ("bool", "any")


def selector_problem(source: str) -> str:
    """The server's error text; '' if the expression is right."""
    expression = examined(source, {"device": _DEVICE}, binds=True)
    if expression.problem:
        # an empty text has no first column
        problem = expression.problem if source else expression.problem.replace(":1:1:", ":1:0:", 1)
        return f"compilation failed: {problem}"
    kind = expression.kind
    if kind.name in _VALUES or holds(kind, UNKNOWN):
        return ""
    return f"must evaluate to bool or the unknown type, not {runtime_name(kind)}"
