"""Which kinds a cluster serves."""

from __future__ import annotations

from claimctl.kube.discovery import Discovery
from tests.e2e.harness import DEFINITIONS
from tests.e2e.kinds import GANGS, definition
from tests.support.claim_server import Server


async def test_a_kind_is_found_in_the_preferred_version_of_its_group() -> None:
    client = Server.started("ml").client
    assert await Discovery(client).workload(("acme.example", "Gang")) is None
    body = definition(GANGS)
    body["spec"]["versions"][0]["subresources"]["scale"] = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
    }
    await client.create(DEFINITIONS, body)
    found = await Discovery(client).workload(("acme.example", "Gang"))
    assert found is not None
    assert (found.path("ml"), found.namespaced) == (GANGS.path("ml"), True)
    assert await Discovery(client).has_scale(found)
    assert await Discovery(client).workload(("acme.example", "Other")) is None


async def test_a_kind_that_claimctl_reads_itself_needs_no_request() -> None:
    server = Server.started("ml")
    found = await Discovery(server.client).workload(("batch", "Job"))
    assert found is not None
    assert found.plural == "jobs"
