"""Admission policies, evaluated as an API server does."""

from __future__ import annotations

from typing import Any

from kube_in_process.text.cel import compiled

Json = dict[str, Any]


def matches(policy: Json, names: Json) -> bool:
    """Whether the policy concerns a request."""
    conditions = policy["spec"].get("matchConditions", ())
    return all(compiled(each["expression"])(names) for each in conditions)


def refusals(policy: Json, names: Json, given: Json | None = None) -> list[str]:
    """The messages of the validations that fail.

    Args:
        given: values of variables that are not to be computed.
    """
    variables = dict(given or {})
    names = {**names, "variables": variables}
    for variable in policy["spec"].get("variables", ()):
        if variable["name"] not in variables:
            variables[variable["name"]] = compiled(variable["expression"])(names)
    return [
        str(compiled(rule["messageExpression"])(names))
        if "messageExpression" in rule
        else rule["message"]
        for rule in policy["spec"]["validations"]
        if not compiled(rule["expression"])(names)
    ]
