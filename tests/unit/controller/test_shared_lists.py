"""Which releases share one LIST of a namespace's pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from claimctl.controller.shared_lists import PATIENCE_SECONDS, SharedLists
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.codec import Listing
from claimctl.kube.errors import KubeError
from claimctl.reservation.facts.pods import claim_names
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import Pod, PodResourceClaimStatus, PodStatus
from tests.support.builders import NAMESPACE
from tests.support.counting_server import pod_body, server

NOBODY: Any = SimpleNamespace(get=lambda name, namespace: None)
"""The informer of pods, which knows none."""
LIST = f"GET /api/v1/namespaces/{NAMESPACE}/pods"


async def test_all_who_ask_at_the_same_time_share_one_list() -> None:
    made = server()
    uid = made.create("pods", pod_body("one"))["metadata"]["uid"]
    lists = SharedLists(made.client, NOBODY)
    found = await asyncio.gather(*(lists.get(NAMESPACE) for _ in range(40)))
    assert made.requests == [LIST]
    assert {each.uids for each in found} == {frozenset((uid,))}
    assert found[0].version


async def test_a_pod_whose_status_lost_a_claim_uses_it_as_before() -> None:
    made = server()
    body = pod_body("one")
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    uid = made.create("pods", body)["metadata"]["uid"]
    status = PodStatus(
        resource_claim_statuses=(PodResourceClaimStatus(name="gpu", resource_claim_name="one-gpu"),)
    )
    known = Pod(metadata=ObjectMeta(name="one", namespace=NAMESPACE, uid=uid), status=status)
    cache: Any = SimpleNamespace(get=lambda name, namespace: known)
    (pod,) = (await SharedLists(made.client, cache).get(NAMESPACE)).using
    assert claim_names(pod) == {"one-gpu"}
    assert (await SharedLists(made.client, NOBODY).get(NAMESPACE)).using == ()


class Slow:
    """A client whose LISTs end when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.first_began, self.go = asyncio.Event(), asyncio.Event()

    async def pages(self, *_: object, **__: object) -> AsyncIterator[Listing[Pod]]:
        self.begun += 1
        self.first_began.set()
        version = str(self.begun)
        await self.go.wait()
        yield Listing((), version)


def slow() -> tuple[Slow, SharedLists]:
    client = Slow()
    return client, SharedLists(cast(Client, client), NOBODY)


async def test_all_who_ask_during_a_list_share_the_next() -> None:
    client, lists = slow()
    first = asyncio.create_task(lists.get(NAMESPACE))
    await client.first_began.wait()
    others = [asyncio.create_task(lists.get(NAMESPACE)) for _ in range(3)]
    await asyncio.sleep(0)
    client.go.set()
    assert (await first).version == "1"
    assert [each.version for each in await asyncio.gather(*others)] == ["2", "2", "2"]
    assert (await lists.get(NAMESPACE)).version == "3"


async def test_other_namespaces_have_other_lists() -> None:
    made = server()
    lists = SharedLists(made.client, NOBODY)
    await asyncio.gather(lists.get(NAMESPACE), lists.get("other"))
    assert len(made.requests) == 2


async def test_a_list_goes_on_while_one_waits_for_it_and_none_begins_for_nobody() -> None:
    client, lists = slow()
    waiting = [asyncio.create_task(lists.get(NAMESPACE)) for _ in range(3)]
    await client.first_began.wait()
    waiting[0].cancel()
    nobody = [asyncio.create_task(lists.get(NAMESPACE)) for _ in range(2)]
    await asyncio.sleep(0)
    for each in nobody:
        each.cancel()
    await asyncio.gather(*nobody, return_exceptions=True)
    client.go.set()
    assert (await waiting[1]).version == "1"
    assert (await lists.get(NAMESPACE)).version == "2"


async def test_a_list_that_nobody_waits_for_any_more_does_not_hold_the_next_up() -> None:
    client, lists = slow()
    first = asyncio.create_task(lists.get(NAMESPACE))
    await client.first_began.wait()
    first.cancel()
    second = asyncio.create_task(lists.get(NAMESPACE))
    while client.begun < 2:  # noqa: ASYNC110  # the second begins without a sign
        await asyncio.sleep(0)
    client.go.set()
    assert (await second).version == "2"


async def test_a_list_that_hangs_holds_the_next_up_for_a_moment_only() -> None:
    client, lists = slow()
    hangs = asyncio.create_task(lists.get(NAMESPACE))
    await client.first_began.wait()
    clock = LoopClock()
    began, second = clock.monotonic(), asyncio.create_task(lists.get(NAMESPACE))
    while client.begun < 2:  # noqa: ASYNC110  # the second begins without a sign
        await asyncio.sleep(0.1)
    assert clock.monotonic() - began == pytest.approx(PATIENCE_SECONDS, abs=0.2)
    client.go.set()
    assert (await second).version == "2"
    assert (await hangs).version == "1"


async def test_all_who_share_a_list_learn_that_it_failed() -> None:
    made = server()
    lists = SharedLists(made.client, NOBODY)
    found = await asyncio.gather(
        *(lists.get("no/such namespace") for _ in range(2)), return_exceptions=True
    )
    assert all(isinstance(each, KubeError) for each in found)
    with pytest.raises(KubeError):
        await lists.get("no/such namespace")
