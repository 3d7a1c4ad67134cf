"""``claimctl timeline`` and ``claimctl tree`` against a served cluster with a controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from tests.e2e.commands import cluster

pytestmark = [pytest.mark.alone, pytest.mark.real_time(400)]
HOLD = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36))


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
