"""Label selectors of objects."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.reschedule.plan.labels import selects
from claimctl.wire.base import from_plain
from claimctl.wire.scheduling import LabelSelector

LABELS = {"app": "web", "tier": "front"}


def rule(operator: str, key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchLabels": {"zone": "a"}}, False),
        (rule("In", "app", "db", "web"), True),
        (rule("In", "zone", "a"), False),
        (rule("NotIn", "app", "web"), False),
        (rule("NotIn", "zone", "a"), True),
        (rule("Exists", "tier"), True),
        (rule("Exists", "zone"), False),
        (rule("DoesNotExist", "tier"), False),
        (rule("DoesNotExist", "zone"), True),
        (rule("Unheard", "tier"), False),
        ({"matchLabels": {"app": "web"}, **rule("In", "tier", "back")}, False),
    ],
)
def test_a_selector_takes_what_meets_all_its_rules(
    selector: dict[str, Any], selected: bool
) -> None:
    assert selects(from_plain(selector, LabelSelector), LABELS) is selected


def test_an_absent_selector_takes_nothing() -> None:
    assert not selects(None, LABELS)
