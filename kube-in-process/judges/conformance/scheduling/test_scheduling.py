"""The embedded scheduler and DaemonSet controller do what real ones of two versions did."""

from __future__ import annotations

import pytest
from kube_in_process.clock import EPOCH, LoopClock

from judges.conformance.scheduling.cases import CASES
from judges.conformance.scheduling.playing import play_embedded, recorded
from judges.conformance.scheduling.stage import Case

VERSIONS = ("1.34", "1.36")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_the_embedded_cluster_does_what_the_real_one_did(case: Case, version: str) -> None:
    wanted = recorded(version)[case.__name__]
    major, minor = (int(part) for part in version.split("."))
    rests = await play_embedded(case, (major, minor), LoopClock(EPOCH))
    for rest, seen in wanted.items():
        assert rests.get(rest) == seen, rest
    assert rests.keys() == wanted.keys()
