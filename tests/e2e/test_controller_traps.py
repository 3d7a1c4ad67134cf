"""Situations in which a claim, a ClaimReservation or a Job could get stuck for good."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest
from kube_in_process.options import Timings

from claimctl.reservation.annotation import reservation_name
from claimctl.wire.base import to_plain
from claimctl.wire.reservations import WorkloadRef
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    RESOURCECLAIMS,
    STATEFULSETS,
)
from claimctl.wire.seams import Query, Response
from tests.e2e import manifests
from tests.e2e.faulty import Faulty
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.scenes import hold_for_deployment

pytestmark = pytest.mark.cluster(HOLD_136)

SLOW_PODS = replace(HOLD_136, timings=Timings(pod_stop=5.0))


async def test_an_explicit_reservation_replaces_the_one_of_the_annotation(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage)
    await stage.create(CLAIMRESERVATIONS, manifests.reservation("explicit"))

    async def alone() -> bool:
        return [each.metadata.name for each in await stage.reservations()] == ["explicit"]

    await stage.until(alone, "only the explicit reservation is left")
    pods = [f"pods/{pod.metadata.name}" for pod in await stage.running()]
    await stage.until_listed("deployments/train", *pods)


async def test_a_job_of_more_pods_than_a_list_has_places_comes_to_its_end(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.job(seconds=1, reserve="*")
    body["spec"] |= {"completions": 258, "parallelism": 16}
    await stage.create(JOBS, body)

    async def complete() -> bool:
        job = await stage.client.get(JOBS, "train", NAMESPACE)
        return any(each.type == "Complete" for each in job.status.conditions)

    await stage.until(complete, "the Job is complete", within=5400)
    await stage.until_released()


@pytest.mark.cluster(SLOW_PODS)
async def test_pods_of_a_deleted_deployment_keep_their_devices_until_the_grace_is_over(
    stage: Stage,
) -> None:
    await stage.started()
    await hold_for_deployment(stage, 2)
    pods = await stage.running()
    await stage.delete(DEPLOYMENTS, "train")
    await stage.clock.sleep(0.5)
    for pod in pods:
        await stage.site.force_delete(pod.metadata.name)
    await stage.clock.sleep(200)
    assert await stage.allocated()
    await stage.until_released(within=200)
    await stage.until(lambda: _none(stage), "the reservation is gone")


async def _none(stage: Stage) -> bool:
    return await stage.reservations() == ()


async def test_a_name_that_somebody_else_has_taken_is_not_asked_for_without_end(
    stage: Stage,
) -> None:
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=0))
    uid = (await stage.client.get(DEPLOYMENTS, "train", NAMESPACE)).metadata.uid
    ref = WorkloadRef(api_group="apps", kind="Deployment", name="train")
    taken = reservation_name(ref, uid, "slice")
    await stage.create(CLAIMRESERVATIONS, manifests.reservation(taken, workload="other"))
    tries = 0

    def count(method: str, path: str) -> None:
        nonlocal tries
        tries += method == "POST" and path.endswith("/claimreservations")

    await stage.started(transport=Faulty(stage.connect(), count))
    asked = {"metadata": {"annotations": {"claimctl.io/reserve": "*"}}}
    await stage.patch(DEPLOYMENTS, "train", asked)
    await stage.quiet(600)
    assert 0 < tries < 30


class SlowLists:
    """A connection over which a LIST of pods takes its time."""

    def __init__(self, stage: Stage) -> None:
        self._inner = stage.connect()

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        lists = method == "GET" and path.endswith("/pods") and ("watch", "true") not in query
        await asyncio.sleep(0.03 if lists else 0.0005)
        return await self._inner.send(method, path, query, headers, body)


@pytest.mark.cluster(replace(HOLD_136, timings=Timings(kcm_finished_pod_loop=0.004)))
async def test_the_claim_of_a_job_that_ended_unseen_is_released_beside_kcms_loop(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.reservation("job", kind="Job", forceDeletedPodGraceSeconds=0)
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.create(JOBS, manifests.job(seconds=10))
    await stage.until_condition("Reserved", "True", "Reserved")
    await stage.stop()
    await stage.clock.sleep(15)
    await stage.started("two", transport=SlowLists(stage), leader_elect=False)
    await stage.until_released(within=10)


async def ask_for_release(stage: Stage) -> None:
    uid = (await stage.claim()).metadata.uid
    asked = {"metadata": {"annotations": {"claimctl.io/release": uid}}}
    await stage.patch(CLAIMRESERVATIONS, "train-slice", asked)


async def test_a_release_that_is_asked_for_counts_once(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1))
    await stage.create(CLAIMRESERVATIONS, manifests.reservation(retentionPolicy="Persistent"))
    await stage.until_condition("Reserved", "True", "Reserved")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_listed("deployments/train")
    await ask_for_release(stage)
    while await stage.allocated():
        await stage.clock.sleep(0.01)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
    await stage.until_running(1)
    await stage.clock.sleep(5)
    assert await stage.condition("Reserved") == ("True", "Reserved")
    (only,) = await stage.reservations()
    assert only.metadata.annotation("claimctl.io/release") is None


async def test_pods_that_are_drained_while_a_release_is_asked_for_get_other_devices(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1))
    await stage.create(CLAIMRESERVATIONS, manifests.reservation())
    await stage.until_condition("Reserved", "True", "Reserved")
    await stage.until_running(1)
    await ask_for_release(stage)
    (pod,) = await stage.running()
    await stage.cordon(pod.spec.node_name)
    await stage.delete(PODS, pod.metadata.name)

    async def moved() -> bool:
        now = await stage.running()
        return [each.spec.node_name for each in now] not in ([], [pod.spec.node_name])

    await stage.until(moved, "the pod runs elsewhere", within=90)
    (other,) = await stage.running()
    assert other.spec.node_name != pod.spec.node_name
    await stage.until_condition("Reserved", "True", "Reserved")


async def test_two_holds_leave_256_pods_their_places(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    for name in ("train", "eval"):
        body = manifests.reservation(f"{name}-slice", workload=name)
        await stage.create(CLAIMRESERVATIONS, body)
        await stage.create(DEPLOYMENTS, manifests.deployment(name, replicas=1))
    await stage.until_condition("Reserved", "True", "Reserved", name="eval-slice")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 255}})

    async def all_run() -> bool:
        return len(await stage.running()) == 256

    await stage.until(all_run, "all 256 pods run", within=600)
    await stage.until_condition("Reserved", "False", "ReservedForFull")


@pytest.mark.alone
async def test_a_pod_that_the_scheduler_gives_up_after_the_reservation_went_leaks_no_claim(
    stage: Stage,
) -> None:
    """The test plays the scheduler's write. So claimctl must not list the pod before it."""
    await stage.started(list_ahead=False)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1))
    await stage.create(CLAIMRESERVATIONS, manifests.reservation(idleTimeoutSeconds=600))
    await stage.until_condition("Reserved", "True", "Reserved")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_listed("deployments/train")
    await stage.site.pause("scheduler")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
    await stage.clock.sleep(1)
    (pod,) = (await stage.client.list(PODS, NAMESPACE)).items
    listed = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
    before = [to_plain(each) for each in (await stage.claim()).status.reserved_for]
    await stage.write_list([*before, listed])
    await stage.delete(CLAIMRESERVATIONS, "train-slice")
    await stage.quiet(60)
    assert len(await stage.reservations()) == 1
    now = [to_plain(each) for each in (await stage.claim()).status.reserved_for]
    await stage.write_list(each for each in now if each["uid"] != pod.metadata.uid)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()
    await stage.until(lambda: _none(stage), "the reservation is gone")
    await stage.site.resume("scheduler")


async def test_a_withdrawn_reservation_takes_no_grace_along(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    for name, grace in (("train", round(stage.scaled(300))), ("eval", 0)):
        body = manifests.reservation(
            f"{name}-slice",
            workload=name,
            forceDeletedPodGraceSeconds=grace,
            idleTimeoutSeconds=1,
        )
        await stage.create(CLAIMRESERVATIONS, body)
        await stage.create(DEPLOYMENTS, manifests.deployment(name, replicas=1))
    await stage.until_running(2)
    await stage.until_condition("Reserved", "True", "Reserved", name="eval-slice")
    await stage.until_condition("Reserved", "True", "Reserved", name="train-slice")
    pods = [pod.metadata.name for pod in await stage.running()]
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.site.force_delete(next(n for n in pods if n.startswith("train")))
    await stage.delete(DEPLOYMENTS, "train")
    await stage.delete(CLAIMRESERVATIONS, "train-slice")
    await stage.clock.sleep(stage.scaled(10))
    await stage.delete(DEPLOYMENTS, "eval")
    await stage.clock.sleep(stage.scaled(280))
    assert await stage.allocated()
    await stage.until_released()
    await stage.delete(CLAIMRESERVATIONS, "eval-slice")
    await stage.until(lambda: _none(stage), "both reservations are gone")


async def test_a_workload_that_a_finalizer_keeps_holds_no_claim_for_ever(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(CLAIMRESERVATIONS, manifests.reservation(kind="StatefulSet"))
    body = manifests.stateful_set(replicas=1)
    body["metadata"]["finalizers"] = ["example.com/slow"]
    await stage.create(STATEFULSETS, body)
    await stage.until_condition("Reserved", "True", "Reserved")
    await stage.until_running(1)
    await stage.delete(STATEFULSETS, "train")
    for pod in await stage.running():
        await stage.delete(PODS, pod.metadata.name)
    await stage.until_released(within=100)
    await stage.until_condition("Released", "True", "Idle")
