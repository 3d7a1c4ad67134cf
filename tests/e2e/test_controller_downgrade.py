"""A downgrade and the way back while pods come and go: prepare, then restore."""

from __future__ import annotations

import pytest

from tests.e2e.downgrading import there_and_back
from tests.e2e.harness import GROUP_136, HOLD_134, HOLD_136, Stage

pytestmark = pytest.mark.alone


@pytest.mark.cluster(HOLD_134)
async def test_replaced_references_return_on_1_34(stage: Stage) -> None:
    await there_and_back(stage, "hold")


@pytest.mark.cluster(HOLD_136)
async def test_replaced_references_return_in_hold(stage: Stage) -> None:
    await there_and_back(stage, "hold")


@pytest.mark.cluster(GROUP_136)
async def test_replaced_references_return_beside_a_group(stage: Stage) -> None:
    await there_and_back(stage, "podgroup")
