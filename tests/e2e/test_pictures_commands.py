"""``claimctl timeline`` and ``claimctl tree`` against a served cluster with a controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import cluster

pytestmark = [pytest.mark.alone, pytest.mark.real_time(400)]
HOLD = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36))
TRAIN = Workload("ml", "train", "slice", 2)


async def test_who_held_it_when_and_what_hangs_together(tmp_path: Path) -> None:
    async with cluster(HOLD, tmp_path) as served:
        made = Acts(served.stage, native=False)
        await made.room("ml")
        await made.held(TRAIN)
        answer = await served.claimctl("timeline", "claim/slice", "-n", "ml", "-o", "json")
        document = answer.document
        lanes = {(each["lane"], each["name"]) for each in document["spans"]}
        assert ("device", made.device(TRAIN)) in lanes
        assert ("holder", "deployments/train") in lanes
        assert sum(lane == "pod" for lane, _ in lanes) == 2
        assert "Reserved" in {each["reason"] for each in document["marks"]}
        tree = await served.claimctl("tree", "deploy/train", "-n", "ml")
        assert tree.out.splitlines()[0] == "Deployment/train"
        assert "ResourceClaim/slice (Held, held by deployments/train)" in tree.out


async def test_what_is_not_there(tmp_path: Path) -> None:
    async with cluster(HOLD, tmp_path) as served:
        answer = await served.claimctl("timeline", "nope", "-n", "ml")
        assert answer.code == 1
        assert answer.err.startswith("error: claim ml/nope not found; there is no claim in")
        answer = await served.claimctl("tree", "deploy/nope", "-n", "ml")
        assert answer.code == 1
        assert answer.err.startswith("error: Deployment/nope not found in namespace ml")
        answer = await served.claimctl("tree", "-n", "ml")
        assert (answer.code, answer.err) == (0, "No claims found: there is no namespace ml.\n")
        answer = await served.claimctl("tree", "secret/x")
        assert answer.code == 2
        assert answer.err.startswith("error: 'secret/x': the kind before '/' must be one of: ")
