"""Label selectors select as the API server's do."""

from __future__ import annotations

import pytest

from claimctl.downgrade.label_selectors import matches, parse
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
    mine = [f"c-{n}" for n, labels in enumerate(LABELS) if matches(parse(text), labels)]
    assert [each.metadata.name for each in listed.items] == mine


@pytest.mark.parametrize(
    "text", ["team=ml,", "=ml", "team ~ ml", "team in ml", "team in (ml", "a b", "team=m l", "-a"]
)
def test_what_is_no_selector_is_refused_with_the_wrong_part(text: str) -> None:
    with pytest.raises(ValueError, match="is not a label requirement"):
        parse(text)
