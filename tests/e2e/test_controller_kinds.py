"""Workloads of any kind hold claims: by a shipped rule, by a user's rule, or by none."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    JOBS,
    PODS,
    RESOURCECLAIMS,
    WORKLOADKINDS,
    Resource,
)
from tests.e2e import manifests
from tests.e2e.harness import DEFINITIONS, HOLD_136, NAMESPACE, NewStage, Stage
from tests.e2e.kinds import (
    begin,
    define,
    describe,
    forbid,
    gangs,
    make_job,
    make_pod,
    permit,
)
from tests.e2e.operators import JOBSETS, LEADERS, JobSets, LeaderWorkerSets, owned
from tests.e2e.rights import grant, permissions, strict

pytestmark = pytest.mark.cluster(HOLD_136)

DONE = "has(self.status.phase) && self.status.phase == 'Done'"
COMPLETED = {"status": {"conditions": [{"type": "Completed", "status": "True"}]}}


def explicit(resource: Resource[Any], **spec: Any) -> dict[str, Any]:
    """A ClaimReservation for the workload ``train`` of the kind."""
    ref = {"apiGroup": resource.group, "kind": resource.kind, "name": "train"}
    return {
        "metadata": {"name": "explicit"},
        "spec": {"resourceClaimName": "slice", "workloadRef": ref, **spec},
    }


def jobset(jobs: int = 2, restarts: int = 0, code: int = 0, seconds: int = 10_000) -> Any:
    """The spec of a JobSet whose pods end after ``seconds`` with an exit code."""
    body = manifests.job(pods=1, seconds=seconds)
    notes = {"kube-in-process/exit-code": str(code)}
    body["spec"]["template"]["metadata"]["annotations"] |= notes
    replicated = {
        "name": "worker",
        "replicas": jobs,
        "template": {"spec": {**body["spec"], "backoffLimit": 0}},
    }
    return {"replicatedJobs": [replicated], "failurePolicy": {"maxRestarts": restarts}}


async def holding(stage: Stage, reference: str) -> None:
    async def holds() -> bool:
        return reference in await stage.references()

    await stage.until(holds, f"the claim is held for {reference}")


async def alone(stage: Stage, reference: str) -> None:
    """The hold is all that is left in the list, and it stays."""
    await stage.until_listed(reference)
    await stage.quiet(30)
    assert await stage.references() == (reference,)


async def test_a_jobset_keeps_its_claim_while_nothing_of_it_exists(stage: Stage) -> None:
    """A restart deletes all Jobs; for a moment neither a Job nor a pod exists."""
    await define(stage, JOBSETS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    operator = JobSets(stage)
    async with operator.running():
        await begin(stage, JOBSETS, **jobset(restarts=1, code=1, seconds=6))
        await holding(stage, "jobsets/train")
        await stage.until_running(2)
        before = (await stage.claim()).status.allocation
        operator.may_make.clear()
        await alone(stage, "jobsets/train")
        assert not (await stage.client.list(JOBS, NAMESPACE)).items
        operator.may_make.set()
        await stage.until_running(2)
        assert (await stage.claim()).status.allocation == before
        # the second failure is the last one
        await stage.until_condition("Released", "True", "WorkloadEnded")
        await stage.until_released()


async def test_a_jobset_that_is_suspended_is_idle_and_one_that_completes_has_ended(
    stage: Stage,
) -> None:
    await define(stage, JOBSETS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    async with JobSets(stage).running():
        await begin(stage, JOBSETS, **jobset(seconds=8))
        await holding(stage, "jobsets/train")
        await stage.until_running(2)
        before = (await stage.claim()).status.allocation
        await stage.patch(JOBSETS, "train", {"spec": {"suspend": True}})
        await alone(stage, "jobsets/train")
        await stage.patch(JOBSETS, "train", {"spec": {"suspend": False}})
        await stage.until_running(2)
        assert (await stage.claim()).status.allocation == before
        await stage.until_released()
        await stage.until_condition("Released", "True", "WorkloadEnded")


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_a_jobset_that_is_deleted_gives_its_claim_back_after_its_last_pod(
    stage: Stage, propagation: str
) -> None:
    """Jobs that are orphaned run on, and their pods keep the claim."""
    await define(stage, JOBSETS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    async with JobSets(stage).running():
        await begin(stage, JOBSETS, **jobset())
        await holding(stage, "jobsets/train")
        await stage.until_running(2)
    await stage.delete(JOBSETS, "train", propagation=propagation)
    if propagation == "Orphan":
        await stage.until(lambda: stage.gone(JOBSETS, "train"), "the JobSet is gone")
        await stage.quiet(5)
        assert await stage.allocated()
        assert len(await stage.running()) == 2
        for job in (await stage.client.list(JOBS, NAMESPACE)).items:
            await stage.delete(JOBS, job.metadata.name, propagation="Background")
    await stage.until_released()


async def test_a_leaderworkerset_keeps_its_claim_until_it_is_deleted(stage: Stage) -> None:
    """The chain of a worker goes through the pod of its leader."""
    await define(stage, LEADERS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    template = {"spec": manifests.deployment()["spec"]["template"]["spec"]}
    async with LeaderWorkerSets(stage).running():
        group = {"size": 2, "workerTemplate": template}
        await begin(stage, LEADERS, replicas=2, leaderWorkerTemplate=group)
        await holding(stage, "leaderworkersets/train")
        await stage.until_running(4)
        before = (await stage.claim()).status.allocation
        # the death of a leader takes its workers along
        await stage.delete(PODS, "train-0", propagation="Foreground")
        await stage.until_running(4)
        await stage.patch(LEADERS, "train", {"spec": {"replicas": 0}})
        await alone(stage, "leaderworkersets/train")
        await stage.patch(LEADERS, "train", {"spec": {"replicas": 1}})
        await stage.until_running(2)
        assert (await stage.claim()).status.allocation == before
        await stage.delete(LEADERS, "train", propagation="Background")
        await stage.until_released()


async def test_a_kind_without_a_rule_holds_until_it_is_deleted(stage: Stage) -> None:
    kind = gangs("unruled")
    await define(stage, kind)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    gang = await begin(stage, kind)
    await stage.create(CLAIMRESERVATIONS, explicit(kind))
    await make_pod(stage, gang, kind, "train-a")
    await holding(stage, "gangs/train")
    await stage.delete(PODS, "train-a")
    await alone(stage, "gangs/train")
    await stage.delete(kind, "train")
    await stage.until_released()


async def test_a_rule_that_fails_holds_and_names_the_expression(stage: Stage) -> None:
    kind = gangs("failing")
    await define(stage, kind)
    await describe(stage, kind, ended="self.status.phase == 'Done'")
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    gang = await begin(stage, kind)
    await make_pod(stage, gang, kind, "train-a")
    await holding(stage, "gangs/train")
    await stage.until_condition("Ready", "False", "WorkloadStateUnknown")
    assert await message(stage, "Ready") == "ended fails: no such key: phase"
    await stage.delete(PODS, "train-a")
    await alone(stage, "gangs/train")
    await stage.client.delete(WORKLOADKINDS, f"gangs.{kind.group}", "")
    await stage.until_condition("Ready", "True", "Ready")
    await describe(stage, kind, ended=DONE)
    await stage.patch_status(kind, "train", {"status": {"phase": "Done"}})
    await stage.until_released()


async def message(stage: Stage, condition: str) -> str:
    """The message of a condition of the ClaimReservation for ``slice``."""
    (reservation,) = [
        each for each in await stage.reservations() if each.spec.resource_claim_name == "slice"
    ]
    (shown,) = [each for each in reservation.status.conditions if each.type == condition]
    return shown.message


async def test_children_that_are_left_keep_the_claim(stage: Stage) -> None:
    """The JobSet goes while its Job stays: the Job may make pods, although none exists now."""
    await define(stage, JOBSETS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    made = await begin(stage, JOBSETS)
    await make_job(stage, made, JOBSETS, "train-0")
    await holding(stage, "jobsets/train")
    await stage.until_running(1)
    await stage.create(JOBS, owned(elsewhere("train-1"), made, JOBSETS))
    await stage.patch_status(JOBSETS, "train", COMPLETED)
    await stage.delete(JOBS, "train-0", propagation="Background")
    await alone(stage, "jobsets/train")
    left = "objects that it made are left: Job train-1"
    assert (await message(stage, "Released")).endswith(left)
    await stage.delete(JOBS, "train-1", propagation="Background")
    await stage.until_released()


async def test_a_job_whose_jobset_was_deleted_without_it_keeps_the_claim_between_its_pods(
    stage: Stage,
) -> None:
    """The Job has no controller any more, and for now no pod that uses the claim.

    It has none before the JobSet is gone: garbage collection writes the Job first.
    """
    await define(stage, JOBSETS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    made = await begin(stage, JOBSETS)
    await make_job(stage, made, JOBSETS, "train-0")
    await holding(stage, "jobsets/train")
    await stage.until_running(1)
    gated = manifests.job("train-1", pods=1)
    gated["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "acme.example/wait"}]
    await stage.create(JOBS, owned(gated, made, JOBSETS))
    await stage.patch(JOBSETS, "train", {"metadata": {"finalizers": ["acme.example/wait"]}})
    await stage.delete(JOBSETS, "train", propagation="Orphan")

    async def orphaned() -> bool:
        return not (await stage.client.get(JOBS, "train-1", NAMESPACE)).metadata.owner_references

    await stage.until(orphaned, "the Job has no controller")
    await stage.delete(JOBS, "train-0", propagation="Background")
    await alone(stage, "jobsets/train")
    await stage.patch(JOBSETS, "train", {"metadata": {"finalizers": None}})
    await stage.until(lambda: stage.gone(JOBSETS, "train"), "the JobSet is gone")
    await stage.quiet(30)
    await alone(stage, "jobsets/train")
    assert (await message(stage, "Released")).endswith("are left: Job train-1")
    # a garbage collector that did not know ClaimReservations yet orphans none, and deletes it later
    (reservation,) = await stage.reservations()
    name = reservation.metadata.name
    await stage.patch(CLAIMRESERVATIONS, name, owned({"metadata": {}}, made, JOBSETS))

    async def collected() -> bool:
        return (await stage.client.get(CLAIMRESERVATIONS, name, NAMESPACE)).metadata.deleting

    await stage.until(collected, "the ClaimReservation is being deleted")
    await alone(stage, "jobsets/train")
    await stage.delete(JOBS, "train-1", propagation="Background")
    await stage.until_released()


def elsewhere(name: str) -> dict[str, Any]:
    """A Job whose pod finds no node and names another claim."""
    body = manifests.job(name, pods=1)
    body["spec"]["template"]["spec"]["nodeSelector"] = {"none": "such"}
    body["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimName"] = "other"
    return body


async def test_a_kind_that_vanishes_is_not_gone(stage: Stage) -> None:
    kind = gangs("vanishing")
    await define(stage, kind)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(CLAIMRESERVATIONS, explicit(kind))
    await stage.until_condition("Reserved", "False", "WorkloadNotFound")
    await stage.client.delete(DEFINITIONS, f"gangs.{kind.group}", "")
    await stage.until_condition("Ready", "False", "WorkloadStateUnknown", within=1000)


async def test_a_definition_that_is_deleted_frees_nothing_that_a_pod_uses(stage: Stage) -> None:
    """The server deletes all objects of the kind, and then the kind. A claim that nobody uses any
    more is released if the controller saw that its workload went first."""
    kind = gangs("deleted")
    await define(stage, kind)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    gang = await begin(stage, kind)
    await stage.create(CLAIMRESERVATIONS, explicit(kind))
    await stage.create(PODS, {"metadata": {"name": "beside"}, "spec": template_spec()})
    await make_pod(stage, gang, kind, "train-a")
    await holding(stage, "gangs/train")
    await stage.until_running(2)
    await stage.client.delete(DEFINITIONS, f"gangs.{kind.group}", "")
    await stage.quiet(30)
    assert "beside" in {pod.metadata.name for pod in await stage.running()}
    assert await stage.allocated()
    for pod in await stage.running():
        await stage.delete(PODS, pod.metadata.name)

    async def is_decided() -> bool:
        unknown = await stage.condition("Ready") == ("False", "WorkloadStateUnknown")
        return unknown or await stage.released()

    await stage.until(is_decided, "the claim is released, or its workload is unknown")


def template_spec() -> dict[str, Any]:
    spec: dict[str, Any] = manifests.deployment()["spec"]["template"]["spec"]
    return spec


async def test_a_right_that_is_taken_away_holds_until_it_is_given_back(
    new_stage: NewStage,
) -> None:
    kind = gangs("forbidden")
    async with new_stage(strict(HOLD_136)) as stage:
        await grant(stage, permissions("controller.yaml"), "controller.yaml")
        role = await define(stage, kind)
        await describe(stage, kind, ended=DONE)
        await stage.started()
        await stage.create(RESOURCECLAIMS, manifests.claim())
        gang: ObjectHeader = await begin(stage, kind)
        await make_pod(stage, gang, kind, "train-a")
        await holding(stage, "gangs/train")
        await stage.until_running(1)
        await forbid(stage, kind, role)
        await stage.patch_status(kind, "train", {"status": {"phase": "Done"}})
        await stage.delete(PODS, "train-a")
        await stage.until(lambda: stage.gone(PODS, "train-a"), "the pod is gone")
        await stage.quiet(30)
        await permit(stage, kind)
        await stage.until_released(within=1000)
