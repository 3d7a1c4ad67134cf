"""The client of documents, against an API server in the process."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.api_server import api_server
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.options import ClusterOptions
from kube_in_process.real.client import DocumentClient, KindNotServed, NoAnswer, Refused
from kube_in_process.seams import Response, Transport
from kube_in_process.storage.requests import Actor

ADMIN = Actor("admin", ("system:masters",))
NAMESPACE = ("v1", "Namespace")
CONFIG = ("v1", "ConfigMap")
SYSTEM: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "team"},
    "data": {"a": "1"},
}


class Broken(Transport):
    async def send(self, *_: Any) -> Response:
        raise ConnectionResetError("reset")


async def connected() -> DocumentClient:
    """A client of a server that has the namespace ``team``."""
    client = DocumentClient(
        api_server(ClusterOptions(nodes=0), LoopClock(EPOCH)).transport(ADMIN), "test"
    )
    await client.create(SYSTEM)
    return client


async def test_a_dry_run_writes_nothing() -> None:
    client = await connected()
    await client.create(MAP, dry_run=True)
    await client.apply(MAP, "test", dry_run=True)
    assert await client.list(CONFIG, "team") == []
    await client.apply(MAP, "test")
    (listed,) = await client.list(CONFIG, "team")
    assert (listed["kind"], listed["data"]) == ("ConfigMap", {"a": "1"})


async def test_a_refusal_has_the_words_of_the_server() -> None:
    client = await connected()
    with pytest.raises(Refused, match="409 AlreadyExists") as refused:
        await client.create(SYSTEM)
    assert (refused.value.status, refused.value.reason) == (409, "AlreadyExists")


async def test_to_delete_what_is_gone_is_no_error() -> None:
    client = await connected()
    await client.delete(CONFIG, "team", "settings")
    with pytest.raises(Refused, match="404 NotFound"):
        await client.get(CONFIG, "team", "settings")


async def test_a_kind_that_is_not_served_is_named() -> None:
    client = await connected()
    for version in ("v1", "example.com/v1"):
        with pytest.raises(KindNotServed, match=f"{version} Widget is not served"):
            await client.list((version, "Widget"))


async def test_an_answer_that_does_not_come_names_the_request() -> None:
    with pytest.raises(NoAnswer, match="GET /api/v1: reset"):
        await DocumentClient(Broken(), "test").get(NAMESPACE, "", "team")
