"""Workloads of any kind hold claims: by a shipped rule, by a user's rule, or by none."""

from __future__ import annotations

import pytest

from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    JOBS,
    PODS,
    RESOURCECLAIMS,
    WORKLOADKINDS,
)
from tests.e2e import manifests
from tests.e2e.harness import HOLD_134, HOLD_136, Stage
from tests.e2e.kinds import (
    DEFINITIONS,
    GANGS,
    JOBSETS,
    begin,
    define,
    describe,
    make_job,
    make_pod,
    owned,
)

pytestmark = pytest.mark.cluster(HOLD_136)

both = pytest.mark.parametrize("options", [HOLD_134, HOLD_136], ids=["1.34", "1.36"])
EXPLICIT = {
    "metadata": {"name": "explicit"},
    "spec": {
        "resourceClaimName": "slice",
        "workloadRef": {"apiGroup": GANGS.group, "kind": GANGS.kind, "name": "train"},
    },
}
DONE = {"status": {"conditions": [{"type": "Completed", "status": "True"}]}}


async def holding(stage: Stage, reference: str) -> None:
    async def holds() -> bool:
        return reference in await stage.references()

    await stage.until(holds, f"the claim is held for {reference}")


async def alone(stage: Stage, reference: str) -> None:
    """The hold is all that is left in the list, and it stays."""
    await stage.until_listed(reference)
    await stage.quiet(30)
    assert await stage.references() == (reference,)


@both
async def test_a_jobset_keeps_its_claim_through_a_restart_and_gives_it_back_at_its_end(
    stage: Stage,
) -> None:
    """A restart deletes all Jobs; for a moment neither a Job nor a pod exists."""
    await define(stage, JOBSETS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    jobset = await begin(stage, JOBSETS)
    await make_job(stage, jobset, JOBSETS, "train-0")
    await holding(stage, "jobsets/train")
    before = (await stage.claim()).status.allocation
    await stage.delete(JOBS, "train-0", propagation="Background")
    await alone(stage, "jobsets/train")
    again = await make_job(stage, jobset, JOBSETS, "train-0-again")
    await stage.until_running(1)
    assert (await stage.claim()).status.allocation == before
    await stage.patch_status(JOBSETS, "train", DONE)
    await stage.quiet(10)
    assert await stage.allocated()
    await stage.delete(JOBS, again.metadata.name, propagation="Background")
    await stage.until_released()
    await stage.until_condition("Released", "True", "WorkloadEnded")


@both
async def test_an_unknown_kind_with_a_rule_of_four_lines(stage: Stage) -> None:
    await define(stage, GANGS)
    await stage.started()
    await describe(
        stage,
        GANGS,
        idle="has(self.spec.paused) && self.spec.paused",
        ended="has(self.status.phase) && self.status.phase == 'Done'",
    )
    await stage.create(RESOURCECLAIMS, manifests.claim())
    gang = await begin(stage, GANGS)
    await make_pod(stage, gang, GANGS, "train-a")
    await holding(stage, "gangs/train")
    await stage.delete(PODS, "train-a")
    await alone(stage, "gangs/train")
    await stage.patch_status(GANGS, "train", {"status": {"phase": "Done"}})
    await stage.until_released()


async def test_a_kind_without_a_rule_holds_until_it_is_deleted(stage: Stage) -> None:
    await define(stage, GANGS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    gang = await begin(stage, GANGS)
    await stage.create(CLAIMRESERVATIONS, EXPLICIT)
    await make_pod(stage, gang, GANGS, "train-a")
    await holding(stage, "gangs/train")
    await stage.delete(PODS, "train-a")
    await alone(stage, "gangs/train")
    await stage.delete(GANGS, "train")
    await stage.until_released()


async def test_a_rule_that_fails_holds_and_names_the_expression(stage: Stage) -> None:
    await define(stage, GANGS)
    await describe(stage, GANGS, ended="self.status.phase == 'Done'")
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    gang = await begin(stage, GANGS)
    await make_pod(stage, gang, GANGS, "train-a")
    await holding(stage, "gangs/train")
    await stage.until_condition("Ready", "False", "WorkloadStateUnknown")
    (reservation,) = await stage.reservations()
    (ready,) = [each for each in reservation.status.conditions if each.type == "Ready"]
    assert ready.message == "ended fails: no such key: phase"
    await stage.delete(PODS, "train-a")
    await alone(stage, "gangs/train")
    await stage.client.delete(WORKLOADKINDS, "gangs.acme.example", "")
    await stage.until_condition("Ready", "True", "Ready")
    await describe(stage, GANGS, ended="has(self.status.phase) && self.status.phase == 'Done'")
    await stage.patch_status(GANGS, "train", {"status": {"phase": "Done"}})
    await stage.until_released()


async def test_children_that_are_left_keep_the_claim(stage: Stage) -> None:
    """The JobSet goes while its Job stays: the Job may make pods, although none exists now."""
    await define(stage, JOBSETS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    jobset = await begin(stage, JOBSETS)
    await make_job(stage, jobset, JOBSETS, "train-0")
    await holding(stage, "jobsets/train")
    await stage.until_running(1)
    waiting = manifests.job("train-1", pods=1)
    waiting["spec"]["template"]["spec"]["nodeSelector"] = {"none": "such"}
    waiting["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimName"] = "other"
    await stage.create(JOBS, owned(waiting, jobset, JOBSETS))
    await stage.patch_status(JOBSETS, "train", DONE)
    await stage.delete(JOBS, "train-0", propagation="Background")
    await alone(stage, "jobsets/train")
    (reservation,) = await stage.reservations()
    (released,) = [each for each in reservation.status.conditions if each.type == "Released"]
    assert released.message.endswith("objects that it made are left: Job train-1")
    await stage.delete(JOBS, "train-1", propagation="Background")
    await stage.until_released()


async def test_a_kind_that_vanishes_is_not_gone(stage: Stage) -> None:
    await define(stage, GANGS)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(CLAIMRESERVATIONS, EXPLICIT)
    await stage.until_condition("Reserved", "False", "WorkloadNotFound")
    await stage.client.delete(DEFINITIONS, "gangs.acme.example", "")
    await stage.until_condition("Ready", "False", "WorkloadStateUnknown", within=1000)
