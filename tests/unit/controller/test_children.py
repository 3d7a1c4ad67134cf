"""What is left of the objects that a workload has made."""

from __future__ import annotations

from typing import Any

from claimctl.controller.caches.kinds import KindState
from claimctl.controller.children import children_left
from claimctl.kube.client import Client
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.wire.resources import JOBS
from tests.support.claim_server import Server

TRAIN = shipped_rules()["trainer.kubeflow.org", "TrainJob"]


async def left(client: Client) -> tuple[str, ...]:
    return await children_left(client, {}, KindState(TRAIN), "ml", "u-root")


async def job(client: Client, name: str, owner: str, **spec: Any) -> str:
    reference = {"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": owner}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}
    body = {
        "metadata": {"name": name, "ownerReferences": [reference]},
        "spec": {"template": template, **spec},
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
            name,
            {"spec": {"suspend": True}},
            "ml",
            resource_version=version,
        )
    assert await left(client) == ()
