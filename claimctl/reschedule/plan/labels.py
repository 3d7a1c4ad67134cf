"""Label selectors of objects (metav1.LabelSelector): which labels they match."""

from __future__ import annotations

from collections.abc import Mapping

from claimctl.wire.scheduling import LabelSelector, LabelSelectorRequirement

Labels = Mapping[str, str]


def selects(selector: LabelSelector | None, labels: Labels) -> bool:
    """An absent selector selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.match_labels
    if wanted and any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_meets(each, labels) for each in selector.match_expressions)


def _meets(rule: LabelSelectorRequirement, labels: Labels) -> bool:
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
