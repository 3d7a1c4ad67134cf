"""The controller in the dialect `podgroup`: pods share claims through PodGroups (KEP-5729)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions
from kube_in_process.storage.requests import Fault

from claimctl.kube.errors import NotFound
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    JOBS,
    PODGROUPS,
    PODS,
    REPLICASETS,
    RESOURCECLAIMS,
    STATEFULSETS,
)
from tests.e2e import manifests
from tests.e2e.faulty import Faulty
from tests.e2e.harness import GROUP_136, GROUP_137, NAMESPACE, Stage

pytestmark = pytest.mark.cluster(GROUP_136)

both = pytest.mark.parametrize("options", [GROUP_136, GROUP_137], ids=["1.36", "1.37"])
all_three = pytest.mark.parametrize(
    "options",
    [GROUP_136, GROUP_137, replace(GROUP_137, kubernetes_version=(1, 38))],
    ids=["1.36", "1.37", "1.38"],
)
FINALIZER = "claimctl.io/release"


def version_of(options: ClusterOptions) -> str:
    return {(1, 36): "v1alpha2", (1, 37): "v1beta1"}.get(options.kubernetes_version, "v1")


async def begin(stage: Stage, options: ClusterOptions, **settings: Any) -> None:
    stage.client.use_version(PODGROUPS.group, version_of(options))
    manager = await stage.started(**settings)
    assert manager.detection is not None
    assert manager.detection.dialect == "podgroup"
    assert manager.detection.groups_version == version_of(options)


async def reserved(stage: Stage, replicas: int = 3, **annotations: str) -> None:
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.deployment(replicas=replicas, reserve="*", **annotations)
    await stage.create(DEPLOYMENTS, manifests.in_group(body))
    await stage.until_running(replicas)
    await stage.until_listed("podgroups/train", "deployments/train")


async def group(stage: Stage, name: str = "train") -> PodGroup | None:
    try:
        return await stage.client.get(PODGROUPS, name, NAMESPACE)
    except NotFound:
        return None


async def until_no_group(stage: Stage, name: str = "train", within: float = 60) -> None:
    async def holds() -> bool:
        return await group(stage, name) is None

    await stage.until(holds, f"PodGroup {name} is gone", within)


async def writes_to_claim(stage: Stage, seconds: float, claim: str = "slice") -> int:
    async def count() -> int:
        history = await stage.site.history()
        return sum((r.plural, r.name) == ("resourceclaims", claim) for r in history)

    before = await count()
    await stage.quiet(seconds)
    return await count() - before


@pytest.mark.alone
@pytest.mark.heavy
async def test_600_pods_share_one_claim_with_two_references(stage: Stage) -> None:
    await begin(stage, GROUP_136)
    await reserved(stage, replicas=600)
    made = await group(stage)
    assert made is not None
    assert made.metadata.finalizers[0] == FINALIZER
    assert [owner.kind for owner in made.metadata.owner_references] == ["Deployment"]
    await stage.until_condition("Reserved", "True", "Reserved")
    assert await writes_to_claim(stage, 60) == 0


@all_three
async def test_a_group_is_kept_through_idle_times_and_released_claims(
    stage: Stage, options: ClusterOptions
) -> None:
    await begin(stage, options)
    await reserved(stage, idle_timeout_seconds="20")
    before = await group(stage)
    assert before is not None
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released(within=60)
    await stage.until_condition("Released", "True", "Idle")
    kept = await group(stage)
    assert kept is not None
    assert kept.metadata.uid == before.metadata.uid
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(2)
    await stage.until_listed("podgroups/train", "deployments/train")


@pytest.mark.core
@all_three
async def test_a_deleted_deployment_gives_claim_and_group_back(
    stage: Stage, options: ClusterOptions
) -> None:
    await begin(stage, options)
    await reserved(stage)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()
    await until_no_group(stage)


async def test_a_deployment_deleted_under_a_ghost_frees_nothing_until_the_grace_is_over(
    stage: Stage,
) -> None:
    await begin(stage, GROUP_136)
    seconds = int(stage.scaled(300))
    await stage.create(RESOURCECLAIMS, manifests.claim())
    held = manifests.reservation(forceDeletedPodGraceSeconds=seconds)
    await stage.create(CLAIMRESERVATIONS, held)
    await stage.create(DEPLOYMENTS, manifests.in_group(manifests.deployment(replicas=1)))
    await stage.until_running(1)
    await stage.until_listed("podgroups/train", "deployments/train")
    ghost = (await stage.running())[0].metadata.name
    await stage.delete(DEPLOYMENTS, "train", propagation="Orphan")
    await stage.site.force_delete(ghost)
    for replica_set in (await stage.client.list(REPLICASETS, NAMESPACE)).items:
        await stage.delete(REPLICASETS, replica_set.metadata.name)
    await stage.clock.sleep(stage.scaled(250))
    assert await stage.allocated()
    assert await group(stage) is not None
    await stage.until_released(within=120)
    await until_no_group(stage)


@pytest.mark.core
@both
async def test_a_job_that_has_ended_gives_claim_and_group_back_while_its_pods_are_kept(
    stage: Stage, options: ClusterOptions
) -> None:
    await begin(stage, options)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.job(pods=5, seconds=4, reserve="*")
    await stage.create(JOBS, manifests.in_group(body))
    await stage.until_some_run()
    await stage.until_released()
    assert len((await stage.client.list(PODS, NAMESPACE)).items) == 5
    await until_no_group(stage)


@pytest.mark.alone
@pytest.mark.long
async def test_a_job_with_more_finished_pods_than_places_is_released_by_way_of_its_group(
    stage: Stage,
) -> None:
    await begin(stage, GROUP_136)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.job(pods=270, seconds=45, reserve="*")
    await stage.create(JOBS, manifests.in_group(body))
    await stage.until_running(270)
    await stage.until_released(within=120)
    assert len((await stage.client.list(PODS, NAMESPACE)).items) == 270
    await until_no_group(stage)


async def test_a_suspended_job_with_finished_pods_releases_by_its_policy(stage: Stage) -> None:
    await begin(stage, GROUP_136)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.job(pods=6, seconds=5, reserve="*", idle_timeout_seconds="10")
    body["spec"]["parallelism"] = 2
    await stage.create(JOBS, manifests.in_group(body))
    await stage.until_listed("podgroups/train", "jobs/train")
    await stage.clock.sleep(7)
    await stage.patch(JOBS, "train", {"spec": {"suspend": True}})
    await stage.until_released(within=60)
    assert await group(stage) is not None
    await stage.patch(JOBS, "train", {"spec": {"suspend": False}})
    await stage.until_condition("Released", "True", "WorkloadEnded")
    await stage.until_released()
    await until_no_group(stage)


async def test_a_finished_pod_beside_running_ones_starts_no_storm(stage: Stage) -> None:
    await begin(stage, GROUP_136)
    await reserved(stage, replicas=2)
    other = manifests.in_group(manifests.job("once", pods=1, seconds=2))
    await stage.create(JOBS, other)
    await stage.clock.sleep(10)
    assert await writes_to_claim(stage, 60) == 0


async def test_a_group_that_others_made_is_used_and_never_deleted(stage: Stage) -> None:
    await begin(stage, GROUP_136)
    await stage.create(PODGROUPS, manifests.pod_group("train", "slice"))
    before = await group(stage)
    await reserved(stage)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()
    await stage.quiet(60)
    after = await group(stage)
    assert before is not None
    assert after is not None
    assert after.metadata.uid == before.metadata.uid
    assert after.metadata.finalizers == before.metadata.finalizers


async def test_a_group_that_has_nothing_to_do_with_the_workload_is_left_and_blocks(
    stage: Stage,
) -> None:
    await begin(stage, GROUP_136)
    await reserved(stage)
    await stage.create(PODGROUPS, manifests.pod_group("other", "slice"))
    pod = manifests.in_group(manifests.deployment("other"), "other")
    pod["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    await stage.create(DEPLOYMENTS, pod)
    await stage.until_running(4)
    await stage.until_condition("Consistent", "False", "UnknownReferences")
    await stage.delete(DEPLOYMENTS, "train")
    await stage.quiet(60)
    assert "podgroups/other" in await stage.references()
    await stage.delete(DEPLOYMENTS, "other")
    await stage.quiet(30)
    assert await stage.allocated()
    await stage.delete(PODGROUPS, "other")
    await stage.until_released(within=120)


async def test_a_recreated_deployment_goes_on_with_its_device(stage: Stage) -> None:
    await begin(stage, GROUP_136)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(CLAIMRESERVATIONS, manifests.reservation())
    body = manifests.in_group(manifests.deployment(replicas=2))
    await stage.create(DEPLOYMENTS, body)
    await stage.until_listed("podgroups/train", "deployments/train")
    await stage.delete(DEPLOYMENTS, "train", propagation="Foreground")
    await stage.until(lambda: stage.gone(DEPLOYMENTS, "train"), "the Deployment is gone")
    await stage.create(DEPLOYMENTS, manifests.in_group(manifests.deployment(replicas=2)))
    await stage.until_running(2)
    new = (await stage.client.get(DEPLOYMENTS, "train", NAMESPACE)).metadata.uid

    async def held() -> bool:
        listed = (await stage.claim()).status.reserved_for
        return new in {each.uid for each in listed} and len(listed) == 2

    await stage.until(held, "the new incarnation is listed beside the group")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released(within=120)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(2)
    await stage.until_listed("podgroups/train", "deployments/train")


async def test_a_template_without_group_is_held_as_in_hold_and_told_what_to_add(
    stage: Stage,
) -> None:
    await begin(stage, GROUP_136)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1, reserve="*"))
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "PodTemplateWithoutSchedulingGroup")
    await stage.until_event("PodTemplateWithoutSchedulingGroup")
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()


async def test_a_template_is_given_a_group_although_the_status_was_written_meanwhile(
    stage: Stage,
) -> None:
    """Deployments' controllers write statuses at the very time; that alone wakes no worker."""
    conflicts = 2

    def conflict(method: str, path: str) -> Fault | None:
        nonlocal conflicts
        if (method, path.rpartition("/")[2]) != ("PATCH", "train") or "/deployments/" not in path:
            return None
        conflicts -= 1
        return Fault(status=409, reason="Conflict", message="no") if conflicts >= 0 else None

    stage.client.use_version(PODGROUPS.group, "v1alpha2")
    link = Faulty(stage.connect(), conflict)
    await stage.started(transport=link, allow_template_injection=True)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.deployment(replicas=2, reserve="*", pod_group="inject")
    await stage.create(DEPLOYMENTS, body)

    async def shares() -> bool:
        listed = sorted(each.split("/")[0] for each in await stage.references())
        return listed == ["deployments", "podgroups"]

    await stage.until(shares, "the pods share through a group")
    await stage.until_condition("Reserved", "True", "Reserved")
    assert conflicts < 0


async def test_injection_that_is_not_allowed_and_jobs_are_reported(stage: Stage) -> None:
    await begin(stage, GROUP_136)
    for name in ("slice", "other"):
        await stage.create(RESOURCECLAIMS, manifests.claim(name))
    body = manifests.deployment(replicas=1, reserve="*", pod_group="inject")
    await stage.create(DEPLOYMENTS, body)
    job = manifests.job("once", claim="other", seconds=60, reserve="*", pod_group="inject")
    await stage.create(JOBS, job)
    await stage.until_event("TemplateInjectionNotAllowed")
    await stage.until_event("PodTemplateImmutable")


@pytest.mark.cluster(replace(GROUP_136, devices_per_node=8))
async def test_a_fifth_claim_is_held_one_by_one_and_reported(stage: Stage) -> None:
    await begin(stage, GROUP_136)
    names = [f"claim-{number}" for number in range(5)]
    body = manifests.in_group(manifests.deployment(replicas=1, reserve="*"))
    pod = body["spec"]["template"]["spec"]
    pod["resourceClaims"] = [{"name": n, "resourceClaimName": n} for n in names]
    pod["containers"][0]["resources"]["claims"] = [{"name": n} for n in names]
    for name in names:
        await stage.create(RESOURCECLAIMS, manifests.claim(name))
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(1)
    await stage.until_listed("podgroups/train", "deployments/train", claim="claim-3")

    async def told() -> bool:
        reasons = {
            condition.reason
            for one in await stage.reservations()
            for condition in one.status.conditions
        }
        return "TooManyClaimsForPodGroup" in reasons

    await stage.until(told, "the fifth claim is told")
    await stage.delete(DEPLOYMENTS, "train")
    for name in names:
        await stage.until_released(name)
    await until_no_group(stage)


async def test_a_claim_that_is_deleted_goes_with_its_pods(stage: Stage) -> None:
    await begin(stage, GROUP_136)
    await reserved(stage)
    await stage.delete(RESOURCECLAIMS, "slice")
    await stage.quiet(20)
    assert await stage.allocated()
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until(lambda: stage.gone(RESOURCECLAIMS, "slice"), "the claim is gone")


UNRESERVED = {"metadata": {"annotations": {"claimctl.io/reserve": None}}}


async def until_no_reservations(stage: Stage, within: float = 60) -> None:
    async def holds() -> bool:
        return not await stage.reservations()

    await stage.until(holds, "the reservations are gone", within)


@pytest.mark.core
@pytest.mark.long
async def test_a_withdrawn_reservation_leaves_the_claim_to_its_running_group(stage: Stage) -> None:
    await begin(stage, GROUP_136)
    await reserved(stage)
    pods = {pod.metadata.uid for pod in await stage.running()}
    await stage.patch(DEPLOYMENTS, "train", UNRESERVED)
    await until_no_reservations(stage)
    assert await stage.references() == ("podgroups/train",)
    left = await group(stage)
    assert left is not None
    assert FINALIZER not in left.metadata.finalizers
    await stage.quiet(30)
    assert {pod.metadata.uid for pod in await stage.running()} == pods
    assert await stage.allocated()
    await stage.delete(DEPLOYMENTS, "train")
    await until_no_group(stage)
    await stage.until_released(within=60)


async def test_a_reservation_is_made_again_after_it_was_withdrawn_beside_running_pods(
    stage: Stage,
) -> None:
    await begin(stage, GROUP_136)
    await reserved(stage)
    await stage.patch(DEPLOYMENTS, "train", UNRESERVED)
    await until_no_reservations(stage)
    again = {"metadata": {"annotations": {"claimctl.io/reserve": "*"}}}
    await stage.patch(DEPLOYMENTS, "train", again)
    await stage.until_listed("podgroups/train", "deployments/train")

    async def guarded() -> bool:
        found = await group(stage)
        return found is not None and FINALIZER in found.metadata.finalizers

    await stage.until(guarded, "the group has its finalizer again", 60)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()
    await until_no_group(stage)


async def withdrawn(stage: Stage) -> None:
    """The reservation has gone, and its group is left for the pods of the workload."""
    await reserved(stage)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_running(0)
    await stage.patch(DEPLOYMENTS, "train", UNRESERVED)
    await stage.until_released(within=60)
    await until_no_reservations(stage)


async def test_a_group_that_outlived_its_reservation_stands_in_no_other_reservations_way(
    stage: Stage,
) -> None:
    await begin(stage, GROUP_136)
    await withdrawn(stage)
    body = manifests.stateful_set(replicas=1, reserve="*", name="eval")
    await stage.create(STATEFULSETS, manifests.in_group(body, "eval"))
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(3)
    await stage.until_listed("podgroups/train", "podgroups/eval", "statefulsets/eval")
    await stage.delete(DEPLOYMENTS, "train")
    await stage.delete(STATEFULSETS, "eval")
    await stage.until_released(within=60)
    await until_no_group(stage)
    await until_no_group(stage, "eval")


async def test_a_group_that_nobody_names_any_more_goes_with_the_last_pod_and_frees_the_claim(
    stage: Stage,
) -> None:
    await begin(stage, GROUP_136)
    await withdrawn(stage)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(2)
    await stage.delete(DEPLOYMENTS, "train", propagation="Orphan")
    await stage.quiet(60)
    assert await group(stage) is not None
    for replica_set in (await stage.client.list(REPLICASETS, NAMESPACE)).items:
        await stage.delete(REPLICASETS, replica_set.metadata.name)
    await until_no_group(stage, within=600)
    await stage.until_released(within=60)


async def test_a_scheduler_without_the_gate_is_noticed_by_the_pods_it_lists(stage: Stage) -> None:
    await begin(stage, GROUP_136)
    cluster = stage.embedded
    off = replace(cluster.features, scheduler_pod_groups=False, kcm_pod_groups=False)
    cluster.switch(off)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.in_group(manifests.deployment(replicas=2, reserve="*"))
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(2)
    await stage.until_condition("Consistent", "True", "SchedulerIgnoresPodGroups")
    await stage.until_event("SchedulerIgnoresPodGroups")


async def test_kubelets_without_the_gate_are_noticed_by_the_pods_they_do_not_start(
    stage: Stage,
) -> None:
    await begin(stage, GROUP_136)
    cluster = stage.embedded
    cluster.switch(replace(cluster.features, kubelet_pod_groups=False))
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.in_group(manifests.deployment(replicas=2, reserve="*"))
    await stage.create(DEPLOYMENTS, body)
    await stage.until_listed("podgroups/train", "deployments/train")
    await stage.until_condition("Consistent", "True", "KubeletsRefusePods")
    await stage.until_event("KubeletsRefusePods")


async def test_older_kubelets_are_reported_before_pods_get_stuck_there(stage: Stage) -> None:
    for name in stage.site.nodes:
        older = {"status": {"nodeInfo": {"kubeletVersion": "v1.35.1"}}}
        await stage.site.patch_node(name, older, "status")
    await begin(stage, GROUP_136)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.in_group(manifests.deployment(replicas=0, reserve="*"))
    await stage.create(DEPLOYMENTS, body)
    await stage.until_condition("Consistent", "True", "OldKubelets")


async def test_gates_that_are_switched_while_the_controller_runs_are_noticed(stage: Stage) -> None:
    stage.client.use_version(PODGROUPS.group, "v1alpha2")
    manager = await stage.started()
    cluster = stage.embedded
    on = cluster.features
    await reserved(stage)
    cluster.switch(replace(on, api_group_claims=False))
    await stage.clock.sleep(700)
    assert manager.detection is not None
    assert manager.detection.dialect == "hold"
    cluster.switch(on)
    await stage.clock.sleep(700)
    assert manager.detection.dialect == "podgroup"
    assert await stage.references() == ("podgroups/train", "deployments/train")
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()
    await until_no_group(stage)
