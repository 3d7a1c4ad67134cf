"""``claimctl reschedule`` moves pods of kinds whose WorkloadKinds say that they replace them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import PODS, WORKLOADKINDS, Resource
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.observing import Observation
from claimctl_reschedule_tests.e2e.rescheduling import (
    DUPLICATES,
    closed,
    planned,
    reasons,
    rescheduled,
    runner,
)
from tests.e2e.harness import DEFINITIONS, NAMESPACE, Stage
from tests.e2e.kinds import definition, describe, gangs
from tests.e2e.operators import owned

THREE = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=3)
WANTED = 3
RESOURCES = {"requests": {"cpu": "10"}}
"""The scheduler spreads pods of kinds that it does not know by what they request."""


@asynccontextmanager
async def _gang(stage: Stage, kind: Resource[ObjectHeader]) -> AsyncIterator[None]:
    """A Gang with pods on the first node, and its controller, which replaces what is deleted."""
    await stage.create(DEFINITIONS, definition(kind))
    await stage.until(lambda: _is_served(stage, kind), "gangs are served")
    await closed(stage, 1, 2)
    gang = await stage.create(kind, {"metadata": {"name": "train"}, "spec": {}})
    controller = asyncio.create_task(_control(stage, gang, kind))
    try:
        await stage.until_running(WANTED)
        await closed(stage, 1, 2, unschedulable=False)
        yield
    finally:
        controller.cancel()
        await asyncio.wait({controller})


async def _control(stage: Stage, gang: ObjectHeader, kind: Resource[ObjectHeader]) -> None:
    names = (f"train-{number}" for number in count())
    while True:
        found = (await stage.client.list(PODS, NAMESPACE)).items
        for _ in range(WANTED - sum(not pod.metadata.deleting for pod in found)):
            container = {"name": "main", "image": "main:1", "resources": RESOURCES}
            body = {"metadata": {"name": next(names)}, "spec": {"containers": [container]}}
            await stage.create(PODS, owned(body, gang, kind))
        await stage.site.look_again()


async def _is_served(stage: Stage, kind: Resource[ObjectHeader]) -> bool:
    await stage.client.list(kind)
    return True


@pytest.mark.cluster(THREE)
async def test_pods_of_a_kind_move_if_its_rule_says_that_it_replaces_them(stage: Stage) -> None:
    kind = gangs("replacing")
    async with _gang(stage, kind):
        assert set(reasons(await planned(stage, DUPLICATES)).values()) == {Ground.NO_OWNER}
        await describe(stage, kind)
        assert set(reasons(await planned(stage, DUPLICATES)).values()) == {Ground.NO_OWNER}
        await stage.client.delete(WORKLOADKINDS, f"{kind.plural}.{kind.group}")
        await describe(stage, kind, replacesPods=True)
        report = await rescheduled(stage, DUPLICATES)
        assert report.evicted == 2
        await stage.until_running(WANTED)
        assert len({pod.spec.node_name for pod in await stage.running()}) == 3


@pytest.mark.cluster(THREE)
async def test_a_rule_of_the_cluster_takes_the_place_of_the_shipped_one(stage: Stage) -> None:
    assert ("apps.kruise.io", "CloneSet") in await _replacing(stage)
    body = {"group": "apps.kruise.io", "kind": "CloneSet"}
    meta = {"name": "clonesets.apps.kruise.io"}
    await stage.create(WORKLOADKINDS, {"metadata": meta, "spec": body})
    assert ("apps.kruise.io", "CloneSet") not in await _replacing(stage)


async def _replacing(stage: Stage) -> frozenset[tuple[str, str]]:
    process = runner(stage, DUPLICATES)
    found = await Observation(process.client, process.clock, process.records).read()
    assert found.replacing_kinds is not None
    return found.replacing_kinds
