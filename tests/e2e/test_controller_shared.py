"""A claim of several workloads, and a claim of pods that no workload makes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from kube_in_process.options import ClusterOptions

from claimctl.wire.meta import find_condition
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, JOBS, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_134, HOLD_136, NAMESPACE, PODGROUP_136, Stage
from tests.support.tutorial import PAGE

pytestmark = pytest.mark.cluster(HOLD_136)

every = pytest.mark.parametrize(
    "options", [HOLD_134, HOLD_136, PODGROUP_136], ids=["1.34", "1.36", "groups"]
)


async def share(stage: Stage, name: str, options: ClusterOptions) -> None:
    """A Deployment of one pod on the claim ``slice``, with a PodGroup where claims have them."""
    body = manifests.deployment(name, reserve="*", idle_timeout_seconds="5")
    if options.preset is PODGROUP_136.preset:
        body = manifests.in_group(body, name)
    await stage.create(DEPLOYMENTS, body)


async def workloads(stage: Stage) -> set[str]:
    return {entry for entry in await stage.references() if entry.startswith("deployments/")}


@every
async def test_a_claim_of_two_workloads_is_held_until_both_are_done(
    stage: Stage, options: ClusterOptions
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    for name in ("train", "serve"):
        await share(stage, name, options)
    await stage.until_running(2)

    async def both_hold() -> bool:
        return await workloads(stage) == {"deployments/train", "deployments/serve"}

    async def one_holds() -> bool:
        return await workloads(stage) == {"deployments/serve"}

    await stage.until(both_hold, "both Deployments hold the claim")
    before = (await stage.claim()).status.allocation
    # one is idle for longer than its timeout
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.quiet(30)
    assert (await stage.claim()).status.allocation == before
    # one is gone
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until(one_holds, "the Deployment that is left holds the claim")
    assert (await stage.claim()).status.allocation == before
    await stage.patch(DEPLOYMENTS, "serve", {"spec": {"replicas": 0}})
    await stage.until_released()


async def own_hold_of(stage: Stage, workload: str) -> tuple[str, str]:
    """Status and reason of the condition Reserved of a workload's ClaimReservation, once it is
    there."""
    made = (await stage.client.list(CLAIMRESERVATIONS, NAMESPACE)).items
    (mine,) = (it for it in made if it.spec.workload_ref.name == workload)
    reserved = find_condition(mine.status.conditions, "Reserved")
    return (reserved.status, reserved.reason) if reserved is not None else ("", "")


@every
async def test_a_hold_that_is_over_says_that_the_claim_stays_for_another(
    stage: Stage, options: ClusterOptions
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(JOBS, manifests.job("once", pods=1, seconds=20, reserve="*"))
    await share(stage, "serve", options)
    await stage.until_running(2)

    async def is_over() -> bool:
        return await own_hold_of(stage, "once") == ("False", "OtherHolders")

    await stage.until(is_over, "the ClaimReservation of the Job says for whom the claim stays")
    assert await own_hold_of(stage, "serve") == ("True", "Reserved")


def bare_pod(name: str) -> dict[str, Any]:
    """A pod that no controller makes."""
    template = manifests.deployment(name)["spec"]["template"]
    return {"metadata": {"name": name}, "spec": {**template["spec"], "restartPolicy": "Never"}}


def of_the_page() -> dict[str, Any]:
    """The ClaimReservation of docs/kinds.md that names itself."""
    page = PAGE.with_name("kinds.md").read_text(encoding="utf-8")
    text = page.partition("## Pods without a controller")[2].partition("```yaml")[2]
    made: dict[str, Any] = yaml.safe_load(text.partition("```")[0])
    return made


@every
async def test_a_claim_of_bare_pods_is_held_until_its_reservation_is_deleted(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(CLAIMRESERVATIONS, of_the_page())
    await stage.create(PODS, bare_pod("train-a"))
    await stage.until_running(1)
    before = (await stage.claim()).status.allocation
    await stage.until_listed("claimreservations/shell", "pods/train-a")
    await stage.delete(PODS, "train-a")
    await stage.until_listed("claimreservations/shell")
    await stage.quiet(90)
    await stage.create(PODS, bare_pod("train-b"))
    await stage.until_running(1)
    assert (await stage.claim()).status.allocation == before
    await stage.delete(CLAIMRESERVATIONS, "shell")
    await stage.quiet(20)
    assert await stage.allocated()
    await stage.delete(PODS, "train-b")
    await stage.until_released()
