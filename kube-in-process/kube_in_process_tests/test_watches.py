from __future__ import annotations

import asyncio
import json

import pytest
from kube_in_process.virtual import run

from kube_in_process_tests.servers import config_map, pod, server

PATH = "/api/v1/namespaces/ns/configmaps"


async def test_a_stream_ends_by_its_timeout_and_leaves_no_subscription() -> None:
    served = server()
    events = await served.events(f"{PATH}?watch=true&timeoutSeconds=90")
    assert (events, asyncio.get_running_loop().time()) == ([], 90.0)


@pytest.mark.parametrize(("seconds", "times"), [(150, [60, 120, 148]), (61, [59]), (2, [])])
async def test_bookmarks_come_every_minute_when_asked_for_and_just_before_the_end(
    seconds: int, times: list[float]
) -> None:
    asked = f"{PATH}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}"
    response = await server().open("GET", asked)
    assert [asyncio.get_running_loop().time() async for _ in response.body] == times


async def test_two_watchers_hear_the_same_and_only_of_their_namespace() -> None:
    served = server()
    me = served.local()
    me.create("namespaces", {"metadata": {"name": "other"}})

    async def write() -> None:
        await asyncio.sleep(1)
        me.create("configmaps", config_map("a"), "ns")
        me.create("configmaps", config_map("b"), "other")
        me.delete("configmaps", "ns", "a")

    writer = asyncio.create_task(write())
    path = f"{PATH}?watch=true&timeoutSeconds=5"
    everywhere = "/api/v1/configmaps?watch=true&timeoutSeconds=5"
    streams = await asyncio.gather(served.events(path), served.events(everywhere))
    await writer
    assert list(streams) == [
        [("ADDED", "a"), ("DELETED", "a")],
        [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")],
    ]


async def test_closing_an_answer_ends_its_stream() -> None:
    served = server()
    response = await served.open("GET", f"{PATH}?watch=true")
    asyncio.get_running_loop().call_later(3, lambda: asyncio.ensure_future(response.close()))
    assert ([part async for part in response.body]) == []


def test_a_pod_that_goes_at_once_is_modified_before_it_is_deleted() -> None:
    served = server()
    me = served.local()
    me.create("pods", pod("p"), "ns")
    version = served.api.store.revision
    me.delete("pods", "ns", "p")
    path = f"/api/v1/namespaces/ns/pods?watch=true&timeoutSeconds=1&resourceVersion={version}"
    assert run(served.events(path)) == [("MODIFIED", "p"), ("DELETED", "p")]


async def test_a_bookmark_is_shaped_like_an_object_of_its_kind() -> None:
    served = server()
    response = await served.open(
        "GET", f"{PATH}?watch=true&timeoutSeconds=61&allowWatchBookmarks=true"
    )
    assert json.loads(b"".join([part async for part in response.body])) == {
        "type": "BOOKMARK",
        "object": {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": str(served.api.store.revision)},
        },
    }
