"""Kubelets before 1.37 and claims that are unprepared and prepared again (kubernetes#140527)."""

from __future__ import annotations

import pytest
from kube_in_process.device_witness import RAN_UNPREPARED

from tests.e2e.harness import HOLD_136, Stage
from tests.e2e.scenes import come_while_unprepared

pytestmark = pytest.mark.cluster(HOLD_136)


async def test_a_pod_that_comes_while_its_claim_is_unprepared_may_run_without_devices(
    stage: Stage,
) -> None:
    await come_while_unprepared(stage)
    found = await stage.site.device_faults()
    print(*found, sep="\n")
    is_old = stage.site.fleet.version < (1, 37)
    assert {each.rule for each in found} == ({RAN_UNPREPARED} if is_old else set())
    stage.site.excused.add(RAN_UNPREPARED)
