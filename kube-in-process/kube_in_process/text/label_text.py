"""The text of label selectors, in the syntax of a query."""

from __future__ import annotations

from kube_in_process.objects import Object

_SELECTORS = {"In": "in", "NotIn": "notin"}


def selector_text(selector: Object) -> str:
    """A metav1.LabelSelector in the syntax of a query."""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or []:
        parts.append(_expression_text(expression))
    return ",".join(parts)


def _expression_text(expression: Object) -> str:
    operator, key = expression["operator"], expression["key"]
    if operator == "Exists":
        return str(key)
    if operator == "DoesNotExist":
        return f"!{key}"
    values = ",".join(sorted(expression.get("values") or []))
    return f"{key} {_SELECTORS[operator]} ({values})"
