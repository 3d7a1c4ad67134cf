"""``claimctl upgrade prepare``, ``status`` and ``restore`` as processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.wire.claims import ResourceClaimStatus
from claimctl.wire.reservations import DowngradePlanSpec
from claimctl.wire.resources import DOWNGRADEPLANS, RESOURCECLAIMS
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import ServedCluster, cluster

pytestmark = [pytest.mark.alone, pytest.mark.real_time(120)]

GROUPS = ClusterOptions(preset=Preset.POD_GROUPS, kubernetes_version=(1, 36))
TRAIN = Workload("ml", "train", "slice", 3)
TO = ("upgrade", "prepare", "--to", "1.37")


async def furnished(served: ServedCluster, workload: Workload = TRAIN) -> None:
    acts = Acts(served.stage, native=False, groups=True)
    await acts.room(workload.namespace)
    await acts.held(workload)


async def slice_of(served: ServedCluster) -> ResourceClaimStatus:
    client = served.stage.client
    return (await client.get(RESOURCECLAIMS, TRAIN.claim, TRAIN.namespace)).status


async def plans(served: ServedCluster) -> tuple[object, ...]:
    return (await served.stage.client.list(DOWNGRADEPLANS)).items


async def test_there_and_back(tmp_path: Path) -> None:
    async with cluster(GROUPS, tmp_path) as served:
        await furnished(served)
        before = (await slice_of(served)).allocation
        doctor = await served.claimctl("doctor")
        tried = await served.claimctl(*TO, "--dry-run")
        assert await plans(served) == ()
        done = await served.claimctl(*TO, "-o", "json")
        names = [each.resource for each in (await slice_of(served)).reserved_for]
        status = await served.claimctl("upgrade", "status")
        ready = await served.claimctl("doctor")
        back = await served.claimctl("upgrade", "restore")
        assert (await slice_of(served)).allocation == before
    assert "not ready for 1.37" in doctor.out
    assert "1 PodGroup must be gone before" in doctor.out
    assert (doctor.code, ready.code) == (0, 3)
    assert "new pods of PodGroups wait; next: `claimctl upgrade status`" in ready.out
    assert "not ready for 1.37" not in ready.out
    assert (tried.code, tried.err.splitlines()) == (
        0,
        ["1 claims and 1 PodGroups would be prepared"],
    )
    assert (done.code, done.document["phase"]) == (0, "Prepared")
    assert done.err.splitlines() == [
        "1 of 1 claims are listed pod by pod, and no object of scheduling.k8s.io/v1alpha2 is left",
        "next step: upgrade the cluster to 1.37, then run `claimctl upgrade restore`",
    ]
    assert sorted(names) == ["deployments", "pods", "pods", "pods"]
    assert (status.code, "upgrade the cluster to 1.37" in status.out + status.err) == (0, True)
    assert back.code in (0, 3)


async def test_what_cannot_cross_is_said_first(tmp_path: Path) -> None:
    async with cluster(GROUPS, tmp_path) as served:
        await furnished(served, Workload("ml", "wide", "slice", 257))
        answer = await served.claimctl(*TO)
        assert await plans(served) == ()
    assert answer.code == 3
    assert "kubectl scale -n ml deployments/wide --replicas=255" in answer.out
    assert answer.err.splitlines() == [
        "1 of 1 claims cannot cross: see REASON, then run again",
        "nothing was written",
    ]


async def test_podgroups_of_others_are_named(tmp_path: Path) -> None:
    async with cluster(GROUPS, tmp_path) as served:
        await furnished(served)
        await served.stage.user.create(
            {
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "PodGroup",
                "metadata": {"name": "gang", "namespace": "ml"},
                "spec": {"schedulingPolicy": {"basic": {}}},
            }
        )
        answer = await served.claimctl(*TO)
        assert await plans(served) == ()
    assert answer.code == 3
    assert "PodGroup ml/gang. Delete what they belong to, then run again" in answer.err


async def test_a_plan_for_a_downgrade_is_in_the_way(tmp_path: Path) -> None:
    async with cluster(GROUPS, tmp_path) as served:
        body = {"metadata": {"name": "claimctl"}, "spec": {"action": "Restore"}}
        await served.stage.client.create(DOWNGRADEPLANS, body)
        answer = await served.claimctl(*TO)
        status = await served.claimctl("upgrade", "status")
    assert (answer.code, status.code) == (1, 1)
    assert "DowngradePlan claimctl exists already, for all namespaces" in answer.err
    assert status.err == (
        "error: a downgrade is under way, and no upgrade: claimctl downgrade status\n"
    )


async def test_without_a_plan_the_status_says_how_to_begin(tmp_path: Path) -> None:
    async with cluster(GROUPS, tmp_path) as served:
        answer = await served.claimctl("upgrade", "status")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.endswith(": claimctl upgrade prepare --to 1.37 --dry-run\n")
    assert DowngradePlanSpec().upgrade_to == ""


@pytest.mark.parametrize("preset", [Preset.POD_GROUPS, Preset.PLAIN])
async def test_a_cluster_without_v1alpha2_needs_nothing(tmp_path: Path, preset: Preset) -> None:
    version = (1, 37) if preset is Preset.POD_GROUPS else (1, 36)
    async with cluster(ClusterOptions(preset=preset, kubernetes_version=version), tmp_path) as it:
        answer = await it.claimctl(*TO)
    assert answer.code == 2
    assert "does not serve scheduling.k8s.io/v1alpha2" in answer.err
