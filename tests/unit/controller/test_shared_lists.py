"""Which releases share one LIST of a namespace's pods."""

from __future__ import annotations

import asyncio

import pytest

from claimctl.controller.shared_lists import GATHER_SECONDS, SharedLists
from claimctl.kube.errors import KubeError
from tests.support.builders import NAMESPACE
from tests.support.counting_server import pod_body, server

LIST = f"GET /api/v1/namespaces/{NAMESPACE}/pods"


async def test_all_who_ask_at_the_same_time_share_one_list() -> None:
    made = server()
    uid = made.create("pods", pod_body("one"))["metadata"]["uid"]
    lists = SharedLists(made.client)
    found = await asyncio.gather(*(lists.get(NAMESPACE) for _ in range(40)))
    assert made.requests == [LIST]
    assert {each.uids for each in found} == {frozenset((uid,))}
    assert found[0].version


async def test_a_list_that_has_begun_serves_nobody_else() -> None:
    made = server()
    lists = SharedLists(made.client)
    first = asyncio.create_task(lists.get(NAMESPACE))
    await asyncio.sleep(GATHER_SECONDS)
    made.create("pods", pod_body("late"))
    second = asyncio.create_task(lists.get(NAMESPACE))
    await first
    assert len((await second).uids) == 1
    assert made.requests == [LIST, LIST]


async def test_other_namespaces_have_other_lists() -> None:
    made = server()
    lists = SharedLists(made.client)
    await asyncio.gather(lists.get(NAMESPACE), lists.get("other"))
    assert len(made.requests) == 2


async def test_a_list_goes_on_while_one_waits_for_it_and_ends_with_the_last() -> None:
    made = server()
    lists = SharedLists(made.client)
    waiting = [asyncio.create_task(lists.get(NAMESPACE)) for _ in range(3)]
    await asyncio.sleep(GATHER_SECONDS / 2)
    waiting[0].cancel()
    await waiting[1]
    waiting = [asyncio.create_task(lists.get(NAMESPACE)) for _ in range(2)]
    await asyncio.sleep(GATHER_SECONDS / 2)
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await asyncio.sleep(2 * GATHER_SECONDS)
    assert made.requests == [LIST]


async def test_all_who_share_a_list_learn_that_it_failed() -> None:
    made = server()
    lists = SharedLists(made.client)
    found = await asyncio.gather(
        *(lists.get("no/such namespace") for _ in range(2)), return_exceptions=True
    )
    assert all(isinstance(each, KubeError) for each in found)
    with pytest.raises(KubeError):
        await lists.get("no/such namespace")
