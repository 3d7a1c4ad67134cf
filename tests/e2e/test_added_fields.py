"""claimctl keeps the fields that it does not know: no write of it loses what a later release adds.

All built-in structs of these clusters have such a field; see ``added_fields``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from kube_in_process.options import ClusterOptions

from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    JOBS,
    PODGROUPS,
    PODS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
)
from tests.e2e import added_fields, manifests
from tests.e2e.downgrading import there_and_back
from tests.e2e.harness import (
    GROUP_136,
    GROUP_137,
    HOLD_134,
    HOLD_136,
    NAMESPACE,
    Stage,
    embedded_stage,
)
from tests.e2e.scenes import hold_for_deployment

KNOWN = {added_fields.FIELD: "kept"}


@asynccontextmanager
async def later(options: ClusterOptions) -> AsyncIterator[Stage]:
    """A cluster whose structs have one field more; at the end, claimctl's writes are judged."""
    async with embedded_stage(replace(options, added_field=added_fields.FIELD)) as stage:
        added_fields.add(stage.embedded)
        yield stage
        added_fields.judge(stage.embedded)


@pytest.mark.parametrize("options", [HOLD_134, HOLD_136], ids=["1.34", "1.36"])
async def test_while_pods_come_and_go_and_finish(options: ClusterOptions) -> None:
    async with later(options) as stage:
        await stage.started()
        await hold_for_deployment(stage, 3)
        await stage.create(JOBS, manifests.job("once", pods=1, seconds=3))
        for replicas in (5, 2):
            await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})
            await stage.clock.sleep(20)
        gone = (await stage.running())[0]
        await stage.client.delete(PODS, gone.metadata.name, NAMESPACE)
        await stage.clock.sleep(20)
        assert "deployments/train" in await stage.references()


@pytest.mark.parametrize(
    ("options", "dialect"), [(HOLD_136, "hold"), (GROUP_136, "podgroup")], ids=["hold", "podgroup"]
)
async def test_on_the_way_to_a_downgrade_and_back(options: ClusterOptions, dialect: str) -> None:
    async with later(options) as stage:
        await there_and_back(stage, dialect)


async def test_in_a_pod_template_that_is_given_a_group() -> None:
    async with later(GROUP_137) as stage:
        await stage.started(allow_template_injection=True)
        await stage.create(RESOURCECLAIMS, manifests.claim())
        body = manifests.deployment(replicas=2, reserve="*", pod_group="inject")
        await stage.create(DEPLOYMENTS, body)

        async def shares() -> bool:
            return any(each.startswith("podgroups/") for each in await stage.references())

        await stage.until(shares, "the pods share through a group")
        stored = stage.embedded.admin.get("deployments", NAMESPACE, "train")["spec"]
        assert KNOWN.items() <= stored["template"]["spec"].items()
        assert (await stage.client.list(PODGROUPS, NAMESPACE)).items


async def test_in_a_claim_that_is_made_from_a_template() -> None:
    async with later(HOLD_136) as stage:
        await stage.started()
        template = {"metadata": {"name": "template"}, "spec": {"spec": manifests.claim()["spec"]}}
        await stage.create(RESOURCECLAIMTEMPLATES, template)
        body = manifests.reservation(resourceClaimTemplateName="template")
        await stage.create(CLAIMRESERVATIONS, body)
        await stage.create(DEPLOYMENTS, manifests.deployment())
        await stage.until_running(1)
        made = stage.embedded.admin.get("resourceclaims", NAMESPACE, "slice")["spec"]
        assert KNOWN.items() <= made["devices"]["requests"][0].items()
