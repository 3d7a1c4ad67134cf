"""The life of each kind of workload with a shipped rule, with pods in its name.

JobSet and LeaderWorkerSet have stand-ins for their controllers, in ``test_controller_kinds.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from claimctl.reservation.kinds.shipped import catalog
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import PODS, RESOURCECLAIMS, Resource
from claimctl.wire.workload_kinds import WorkloadKind
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, Stage
from tests.e2e.kinds import begin, define, make_pod
from tests.e2e.operators import JOBSETS, LEADERS

pytestmark = pytest.mark.cluster(HOLD_136)
Json = dict[str, Any]


def done(condition: str) -> Json:
    return {"conditions": [{"type": condition, "status": "True"}]}


SUSPENDED = {"spec": {"suspend": True}}, {"spec": {"suspend": False}}
BY_POLICY = (
    {"spec": {"runPolicy": {"suspend": True}}},
    {"spec": {"runPolicy": {"suspend": False}}},
)
SCALED = {"spec": {"replicas": 0}}, {"spec": {"replicas": 1}}
STOPPED = {"status": {"printableStatus": "Stopped"}}, {"status": {"printableStatus": "Running"}}


@dataclass(frozen=True, slots=True)
class Life:
    """What users and the controller of a kind write in the life of an object.

    Attributes:
        idle: makes it idle, and wants pods again.
        retried: a status in which pods have failed, and others follow.
        ended: the status at its end; empty for a kind that only its deletion ends.
    """

    name: str
    version: str
    idle: tuple[Json, Json]
    retried: Json = field(default_factory=dict)
    ended: Json = field(default_factory=dict)

    @property
    def rule(self) -> WorkloadKind:
        return next(each for each in catalog() if each.metadata.name == self.name)

    def resource(self) -> Resource[ObjectHeader]:
        plural, _, group = self.name.partition(".")
        return Resource(group, self.version, plural, self.rule.spec.kind, ObjectHeader)

    def children(self) -> list[Resource[Any]]:
        """The foreign kinds between it and its pods."""
        made = {(child.group, child.kind) for child in self.rule.spec.children}
        kinds: tuple[Resource[Any], ...] = (
            JOBSETS,
            LEADERS,
            *(other.resource() for other in LIVES),
        )
        return [kind for kind in kinds if (kind.group, kind.kind) in made]


LIVES = (
    Life("rayclusters.ray.io", "v1", SUSPENDED, {"state": "failed"}),
    Life(
        "rayjobs.ray.io",
        "v1",
        SUSPENDED,
        {"jobDeploymentStatus": "Retrying", "jobStatus": "FAILED"},
        {"jobDeploymentStatus": "Complete"},
    ),
    Life("trainjobs.trainer.kubeflow.org", "v1alpha1", SUSPENDED, ended=done("Complete")),
    Life("pytorchjobs.kubeflow.org", "v1", BY_POLICY, done("Restarting"), done("Succeeded")),
    Life("mpijobs.kubeflow.org", "v2beta1", BY_POLICY, done("Restarting"), done("Failed")),
    Life("podcliquesets.grove.io", "v1alpha1", SCALED),
    Life("podcliquescalinggroups.grove.io", "v1alpha1", SCALED),
    Life("podcliques.grove.io", "v1alpha1", SCALED),
    Life("rollouts.argoproj.io", "v1alpha1", SCALED, {"phase": "Degraded"}),
    Life("clonesets.apps.kruise.io", "v1alpha1", SCALED),
    Life("virtualmachines.kubevirt.io", "v1", STOPPED, {"printableStatus": "Migrating"}),
)
OWN_STAND_INS = {"jobsets.jobset.x-k8s.io", "leaderworkersets.leaderworkerset.x-k8s.io"}


def test_every_foreign_kind_with_a_rule_has_a_life() -> None:
    foreign = {each.metadata.name for each in catalog() if "." in each.spec.group}
    assert {life.name for life in LIVES} | OWN_STAND_INS == foreign


async def test_a_kind_that_comes_under_a_running_controller_is_followed_with_its_first_pod(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.quiet(5)
    kind = LIVES[-1].resource()
    await define(stage, kind)
    made = await begin(stage, kind)
    await make_pod(stage, made, kind, "train-a")
    await stage.until_listed("pods/train-a", f"{kind.plural}/train")


async def write(stage: Stage, resource: Resource[Any], change: Json) -> None:
    patch = stage.patch_status if "status" in change else stage.patch
    await patch(resource, "train", change)


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
async def test_a_workload_holds_its_claim_from_its_first_pod_to_its_end(
    stage: Stage, life: Life
) -> None:
    kind = life.resource()
    reference = f"{kind.plural}/train"
    for served in (kind, *life.children()):
        await define(stage, served)
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    made = await begin(stage, kind)

    async def runs(name: str) -> None:
        await make_pod(stage, made, kind, name)
        await stage.until_listed(f"pods/{name}", reference)

    async def keeps(name: str) -> None:
        """The pod goes, and the claim stays."""
        await stage.delete(PODS, name)
        await stage.until_listed(reference)
        await stage.quiet(15)
        assert (await stage.claim()).status.allocation == before

    await runs("train-a")
    before = (await stage.claim()).status.allocation
    if life.retried:
        await write(stage, kind, {"status": life.retried})
    await keeps("train-a")
    await runs("train-b")
    idle, back = life.idle
    await write(stage, kind, idle)
    await stage.until_condition("Reserved", "True", "Reserved")
    await keeps("train-b")
    await write(stage, kind, back)
    await runs("train-c")
    if life.ended:
        await write(stage, kind, {"status": life.ended})
    else:
        await stage.delete(kind, "train", propagation="Orphan")
    await stage.quiet(10)
    assert (await stage.claim()).status.allocation == before
    await stage.delete(PODS, "train-c")
    await stage.until_released()
