"""PodGroups that the Job controller makes: they are set on pods, and not in the Job's template.

``spec.scheduling`` of a Job and the gate WorkloadWithJob are in Kubernetes 1.37 (KEP-5547, alpha).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.wire.pods import Pod
from claimctl.wire.resources import JOBS, PODGROUPS, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import GROUP_137, NAMESPACE, Stage

JOB_GROUPS = replace(GROUP_137, job_pod_groups=True)

pytestmark = pytest.mark.cluster(JOB_GROUPS)

HELD = "jobs/train"


async def begin(stage: Stage, *, shares: bool, pods: int = 3, **spec: object) -> str:
    """A Job that reserves its claim, and the name of the PodGroup that it gets."""
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.job(pods=pods, reserve="*", retention_policy="Persistent", seconds=3000)
    body["spec"] |= spec
    if shares:
        shared = [{"name": "gpu", "resourceClaimName": "slice"}]
        body["spec"]["scheduling"] = {"resourceClaims": shared}
    await stage.create(JOBS, body)
    await stage.until_running(pods)
    (group,) = (await stage.client.list(PODGROUPS)).items
    return group.metadata.name


async def suspend(stage: Stage, *, suspended: bool) -> None:
    await stage.patch(JOBS, "train", {"spec": {"suspend": suspended}})


async def reason(stage: Stage) -> str:
    return (await stage.condition("Reserved"))[1]


async def test_the_job_shares_its_claim_through_the_group_of_its_pods(stage: Stage) -> None:
    group = await begin(stage, shares=True)
    await stage.until_listed(f"podgroups/{group}", HELD)
    await stage.until_condition("Reserved", "True", "Reserved")


async def test_a_job_in_a_group_without_the_claim_is_not_told_to_change_its_template(
    stage: Stage,
) -> None:
    await begin(stage, shares=False)
    await stage.until_listed(HELD, *[f"pods/{pod.metadata.name}" for pod in await pods(stage)])
    await stage.until_condition("Reserved", "True", "ClaimNotInPodGroup")


async def pods(stage: Stage) -> tuple[Pod, ...]:
    return (await stage.client.list(PODS, NAMESPACE)).items


async def test_a_suspended_job_that_loses_its_group_keeps_its_device(stage: Stage) -> None:
    group = await begin(stage, shares=True)
    await stage.until_listed(f"podgroups/{group}", HELD)
    before = (await stage.claim()).status.allocation
    await suspend(stage, suspended=True)
    await stage.until_listed(HELD)
    assert (await stage.client.list(PODGROUPS)).items == ()
    await stage.clock.sleep(400)
    assert await stage.references() == (HELD,)
    assert await reason(stage) != "PodTemplateWithoutSchedulingGroup"
    await suspend(stage, suspended=False)
    await stage.until_running(3)
    await stage.until_listed(f"podgroups/{group}", HELD)
    assert (await stage.claim()).status.allocation == before


async def test_an_ended_job_gives_its_device_back(stage: Stage) -> None:
    group = await begin(stage, shares=True)
    await stage.until_listed(f"podgroups/{group}", HELD)
    await stage.client.delete(JOBS, "train", NAMESPACE, propagation="Foreground")
    await stage.until_released(within=120)


@pytest.mark.cluster(replace(JOB_GROUPS, conflict_storm=True))
@pytest.mark.parametrize("in_groups", [True, False])
async def test_a_crowd_in_groups_without_the_claim_is_listed_ahead(
    stage: Stage, in_groups: bool
) -> None:
    """The scheduler lists such pods one by one, as those without a group."""
    stage.embedded.switch(replace(stage.embedded.features, job_pod_groups=in_groups))
    await stage.started(list_ahead=True)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(JOBS, manifests.job(pods=250, reserve="*", seconds=3000))
    began = stage.clock.monotonic()
    await stage.until_running(250)
    assert stage.clock.monotonic() - began < 10
