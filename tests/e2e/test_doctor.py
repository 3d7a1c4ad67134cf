"""claimctl doctor on healthy clusters and on clusters with problems."""

from __future__ import annotations

from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import NODE, Workload
from claimctl_demo.story.presets import DIALECTS
from tests.e2e.commands import ServedCluster, cluster

pytestmark = pytest.mark.alone

TRAIN = Workload("ml", "train", "slice", 2)


@pytest.mark.real_time(120)
@pytest.mark.parametrize(
    ("dialect", "version", "claims", "groups"),
    [
        (Preset.RESERVED_FOR_ANY_POD, (1, 36), ["v1"], []),
        (Preset.POD_GROUPS, (1, 38), ["v1"], ["v1", "v1beta1"]),
        (Preset.PLAIN, (1, 33), ["v1beta2", "v1beta1"], []),
    ],
)
async def test_a_healthy_cluster_has_a_dialect_with_reasons_and_no_findings(
    tmp_path: Path, dialect: Preset, version: tuple[int, int], claims: list[str], groups: list[str]
) -> None:
    options = ClusterOptions(preset=dialect, kubernetes_version=version)
    async with cluster(options, tmp_path) as served:
        answer = await served.claimctl("doctor", "-o", "json")
    document = answer.document
    assert (answer.code, document["dialect"], document["findings"]) == (0, DIALECTS[dialect], [])
    assert document["reasons"][0].startswith("a dry-run create of a ResourceClaim")
    assert document["servedVersions"] == {
        "resource.k8s.io": claims,
        "podgroups.scheduling.k8s.io": groups,
    }


async def _busy(served: ServedCluster) -> Acts:
    acts = Acts(served.stage, native=False, groups=True)
    await acts.room("ml")
    await acts.held(TRAIN)
    return acts


async def _spoilt(served: ServedCluster) -> None:
    """A leaked claim, a full list, dangling references, and a kubelet of the previous release."""
    user = served.stage.user
    for name in ("leaked", "full"):
        await served.create_claim(name)
    device = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-0", "device": "x"}
    allocation = {"devices": {"results": [device]}}
    nobody = [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(250)]
    await user.patch_status(served.claims, "ml", "leaked", {"status": {"allocation": allocation}})
    await user.patch_status(
        served.claims, "ml", "full", {"status": {"allocation": allocation, "reservedFor": nobody}}
    )
    older = {"status": {"nodeInfo": {"kubeletVersion": "v1.35.1"}}}
    await user.patch_status(NODE, "", "node-0", older)


@pytest.mark.real_time(120)
async def test_what_is_wrong_is_found_and_named(tmp_path: Path) -> None:
    options = ClusterOptions(preset=Preset.POD_GROUPS)
    async with cluster(options, tmp_path) as served:
        acts = await _busy(served)
        with served.without_kcm():
            await _spoilt(served)
            answer = await served.claimctl("doctor", "-o", "json")
            table = await served.claimctl("doctor")
        acts.expect_held(TRAIN)
    found = [(each["check"], each["object"]) for each in answer.document["findings"]]
    assert answer.code == table.code == 3
    assert found == [
        ("near-limit", "full"),
        ("orphans", "full"),
        ("orphans", "leaked"),
        ("mixed-versions", "node-0"),
    ]
    assert "kubelet v1.35.1 refuses pods that share a claim through a PodGroup" in table.out


@pytest.mark.real_time(120)
async def test_a_dialect_that_nobody_speaks_is_bad_input(tmp_path: Path) -> None:
    async with cluster(ClusterOptions(preset=Preset.PLAIN), tmp_path) as served:
        answer = await served.claimctl("doctor", "--reservation-mode", "latin")
    assert answer.code == 2
    assert "--reservation-mode: 'latin' is not one of auto, native, podgroup, hold" in answer.err
