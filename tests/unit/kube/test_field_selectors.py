"""ClaimReservations by the fields that their CRD makes selectable."""

from __future__ import annotations

import pytest

from claimctl.kube.errors import BadRequest
from claimctl.wire.resources import CLAIMRESERVATIONS
from tests.support.claim_server import NAMESPACE, Server


async def names(server: Server, selector: str) -> list[str]:
    found = await server.client.list(CLAIMRESERVATIONS, NAMESPACE, field_selector=selector)
    return [each.metadata.name for each in found.items]


async def test_the_claim_and_the_workload_select_reservations() -> None:
    server = Server.started()
    server.reservation("one", claim="a", workload="train")
    server.reservation("two", claim="b", workload="train")
    server.reservation("three", claim="b", workload="eval")
    assert await names(server, "spec.resourceClaimName=b") == ["three", "two"]
    assert await names(server, "spec.workloadRef.name=train") == ["one", "two"]
    assert await names(server, "spec.resourceClaimName=b,spec.workloadRef.name!=train") == ["three"]


async def test_other_fields_are_refused() -> None:
    with pytest.raises(BadRequest, match="field label not supported"):
        await names(Server.started(), "spec.retentionPolicy=Manual")
