"""Label selectors select as the API server's do."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.label_selectors import LabelSelector, parse, selects
from claimctl.wire.base import from_plain
from claimctl.wire.resources import RESOURCECLAIMS as CLAIMS
from tests.support.claim_server import NAMESPACE, Server

LABELS: tuple[dict[str, str], ...] = (
    {},
    {"team": "ml"},
    {"team": "web", "x.io/tier": "1"},
    {"team": "", "gone": "no"},
)
SELECTORS = (
    "",
    "team",
    "!team",
    "! team",
    "team=ml",
    "team==ml",
    "team!=ml",
    "team in (ml, web)",
    "team notin (ml)",
    "team in (ml,web),x.io/tier=1",
    "team=,gone",
    "team in ()",
    "x.io/tier,!gone , team!=ml",
)


@pytest.mark.parametrize("text", SELECTORS)
async def test_a_selector_selects_what_the_server_selects(text: str) -> None:
    server = Server.started()
    for number, labels in enumerate(LABELS):
        meta = {"name": f"c-{number}", "namespace": NAMESPACE, "labels": labels}
        server.admin.create("resourceclaims", {"metadata": meta, "spec": {"devices": {}}})
    listed = await server.client.list(CLAIMS, NAMESPACE, label_selector=text)
    mine = [f"c-{n}" for n, labels in enumerate(LABELS) if selects(parse(text), labels)]
    assert [each.metadata.name for each in listed.items] == mine


@pytest.mark.parametrize(
    "text", ["team=ml,", "=ml", "team ~ ml", "team in ml", "team in (ml", "a b", "team=m l", "-a"]
)
def test_what_is_no_selector_is_refused_with_the_wrong_part(text: str) -> None:
    with pytest.raises(ValueError, match="is not a label requirement"):
        parse(text)


WEB = {"app": "web", "tier": "front"}


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
    assert selects(from_plain(selector, LabelSelector), WEB) is selected


def test_an_absent_selector_takes_nothing() -> None:
    assert not selects(None, WEB)
