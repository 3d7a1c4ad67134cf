"""The rules of an aggregated ClusterRole: those of the ClusterRoles that it selects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kube_in_process.objects import Object
from kube_in_process.storage.selectors import parse_labels
from kube_in_process.text.label_text import selector_text

AGGREGATION = "clusterrole-aggregation-controller"
"""The controller that writes these rules, and the manager of their field."""


def aggregated_rules(role: Object, roles: Iterable[Object]) -> list[Any] | None:
    """The rules that ``role`` should have; None if it aggregates nothing.

    Each selector in turn adds the rules of the roles that it selects, by their names, each rule
    once.
    """
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
    if not selectors:
        return None
    name = role["metadata"]["name"]
    others = sorted(
        (other for other in roles if other["metadata"]["name"] != name),
        key=lambda other: str(other["metadata"]["name"]),
    )
    gathered: list[Any] = []
    for selector in selectors:
        requirements = parse_labels(selector_text(selector))
        for other in others:
            labels = other["metadata"].get("labels") or {}
            if all(requirement.matches(labels) for requirement in requirements):
                rules = other.get("rules") or ()
                gathered += [rule for rule in rules if rule not in gathered]
    return gathered
