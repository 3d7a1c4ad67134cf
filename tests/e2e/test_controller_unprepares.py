"""A pod that comes while its held claim is being unprepared for the last other one.

Kubelets before 1.37 start it at once, and then its devices are unprepared beside it
(kubernetes#140527). The witness of devices sees it.
"""

from __future__ import annotations

import pytest
from kube_in_process.device_witness import RAN_UNPREPARED

from tests.e2e.harness import HOLD_136, Stage
from tests.e2e.scenes import come_while_unprepared

pytestmark = pytest.mark.cluster(HOLD_136)


async def test_a_pod_waits_until_its_claim_is_unprepared_and_prepared_again(stage: Stage) -> None:
    await come_while_unprepared(stage)
    assert [call.verb for call in stage.site.driver.calls()] == ["prepare", "unprepare", "prepare"]
    assert await stage.site.device_faults() == []


async def test_a_pod_that_runs_with_unprepared_devices_is_seen(stage: Stage) -> None:
    stage.embedded.join_unprepares()
    await come_while_unprepared(stage)
    assert [call.verb for call in stage.site.driver.calls()] == ["prepare", "unprepare"]
    (fault,) = await stage.site.device_faults()
    assert (fault.rule, fault.claim) == (RAN_UNPREPARED, "team/slice in team/late")
    stage.site.excused.add(RAN_UNPREPARED)
