"""What is left of the objects that a workload has made."""

from __future__ import annotations

from typing import Any

from claimctl.controller.caches.kinds import KindState
from claimctl.controller.children import children_left
from claimctl.kube.client import Client
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import JOBS
from tests.support.claim_server import Server

TRAIN = shipped_rules()["trainer.kubeflow.org", "TrainJob"]


async def left(client: Client, orphans_with: str = "") -> tuple[str, ...]:
    kind = KindState(TRAIN)
    return await children_left(client, {}, kind, "ml", "u-root", orphans_with=orphans_with)


async def job(client: Client, name: str, owner: str = "", claim: str = "", **spec: Any) -> str:
    reference = {"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": owner, "controller": True}
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [{"name": "a", "image": "a"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}] if claim else [],
    }
    body = {
        "metadata": {"name": name, "ownerReferences": [reference] if owner else []},
        "spec": {"template": {"spec": pod}, **spec},
    }
    made: str = (await client.create(JOBS, body, "ml")).metadata.uid
    return made


async def test_children_count_by_their_owners_and_the_rule_of_their_kind() -> None:
    """The cluster serves no JobSet, the other kind of children; so there are none of it."""
    client = Server.started("ml").client
    assert await left(client) == ()
    first = await job(client, "first", "u-root")
    await job(client, "below", first)
    await job(client, "suspended", "u-root", suspend=True)
    await job(client, "of-another", "u-other")
    assert await left(client) == ("Job below", "Job first")
    for name in ("first", "below"):
        version = (await client.get(JOBS, name, "ml")).metadata.resource_version
        await client.merge_patch(
            JOBS,
            ObjectMeta(name=name, namespace="ml", resource_version=version),
            {"spec": {"suspend": True}},
        )
    assert await left(client) == ()


async def test_an_orphan_counts_if_the_workload_is_gone_and_it_names_the_claim() -> None:
    client = Server.started("ml").client
    await job(client, "orphan", claim="slice")
    await job(client, "suspended", claim="slice", suspend=True)
    await job(client, "with-another-claim", claim="other")
    await job(client, "of-another", "u-other", claim="slice")
    assert await left(client) == ()
    assert await left(client, orphans_with="slice") == ("Job orphan",)


async def test_children_may_be_nested_deeply() -> None:
    """So deep that the decoder reads them, and a function of Python's that calls itself fails."""
    server = Server.started("ml")
    for name, owner, claim in (("a", "u-root", ""), ("b", "", "slice"), ("c", "", "slic")):
        await job(server.client, name, owner, claim)
    await job(server.client, "suspended", "u-root", suspend=True)
    server.spoiling.deepen("jobs", "", 800)
    # their rule does not read what is so deep
    assert await left(server.client, orphans_with="slice") == ("Job a", "Job b")
