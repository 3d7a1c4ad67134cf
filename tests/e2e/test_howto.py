"""The commands of docs/howto.md, on a cluster that has what the page talks about."""

from __future__ import annotations

from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import cluster
from tests.e2e.runbooks import run
from tests.support.tutorial import PAGE, Typed, steps

pytestmark = [pytest.mark.alone, pytest.mark.real_time(400)]
HOLD = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36))
TRAIN = Workload("default", "train", "train-slice", 2)
FINDINGS = 3
"""The exit code of ``claimctl doctor`` if it finds something, as it does beside this controller."""


async def test_every_command_works(tmp_path: Path) -> None:
    page = PAGE.with_name("howto.md").read_text(encoding="utf-8")
    commands = [each for each in steps(page) if isinstance(each, Typed)]
    assert len(commands) >= 9
    async with cluster(HOLD, tmp_path) as served:
        await Acts(served.stage, native=False).held(TRAIN)
        for each in commands:
            answer = await run(each.text, served.kubeconfig)
            if "command not found" in answer.err:
                pytest.skip("there is no kubectl on this machine")
            allowed = {0, FINDINGS} if each.text == "claimctl doctor" else {0}
            assert answer.code in allowed, f"{each.section}: {each.text}: {answer}"
            if "--field-selector" in each.text:
                assert "train-slice" in answer.out, answer
