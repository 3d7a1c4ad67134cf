"""A NoExecute taint on a held device: kube-controller-manager evicts each pod that has it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from claimctl.wire.resources import DEPLOYMENTS, RESOURCECLAIMS, STATEFULSETS, Resource
from tests.e2e import manifests
from tests.e2e.drivers import devices_of, tainted, tainted_by_rule
from tests.e2e.harness import HOLD_136, Stage

pytestmark = pytest.mark.cluster(HOLD_136)

CLAIMS = "resourceclaims"
MOST = 6
"""How many pods are made until one runs on another device."""
WAYS = pytest.mark.parametrize("taint", [tainted, tainted_by_rule], ids=["slice", "rule"])
Tainting = Callable[[Stage], AbstractAsyncContextManager[None]]


async def held(stage: Stage, resource: Resource[Any], body: dict[str, Any]) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(resource, body)
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved")


@pytest.mark.core
async def test_a_pod_leaves_a_device_that_evicts_it(stage: Stage) -> None:
    """By a slice: the scheduler here knows no rules, and may choose the same device again."""
    await held(stage, STATEFULSETS, manifests.stateful_set(replicas=1, reserve="*"))
    device = await devices_of(stage)
    async with tainted(stage):

        async def elsewhere() -> bool:
            return await devices_of(stage) not in ([], device) and len(await stage.running()) == 1

        await stage.until(elsewhere, "the pod runs on another device", within=10)
        await stage.until_condition("Reserved", "True", "Reserved")
    history = [each for each in await stage.site.history() if each.plural == "pods"]
    assert len({each.object()["metadata"]["uid"] for each in history}) - 1 <= MOST


@WAYS
async def test_a_hold_leaves_a_device_that_evicts_its_pods(stage: Stage, taint: Tainting) -> None:
    """A Deployment makes new pods before the evicted ones are gone. While a pod is listed, the
    claim keeps its device; how long that goes on is a matter of luck, also without claimctl."""
    await held(stage, DEPLOYMENTS, manifests.deployment(replicas=1, reserve="*"))
    since = max(each.number for each in await stage.site.history())
    async with taint(stage):

        async def left() -> bool:
            later = [one for one in await stage.site.history(since) if one.plural == CLAIMS]
            listed = [(one.object().get("status") or {}).get("reservedFor") or () for one in later]
            return any(all(each["resource"] == "pods" for each in list_) for list_ in listed)

        await stage.until(left, "the hold leaves the list", within=10)
