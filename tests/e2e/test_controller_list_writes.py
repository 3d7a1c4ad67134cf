"""What a server makes of a write of tombstones, which carries the list and not the version."""

from __future__ import annotations

import pytest

from claimctl.controller.writer import Writer
from claimctl.kube.errors import Conflict
from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.references import tombstone
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.wire.claims import Reference
from claimctl.wire.resources import DEPLOYMENTS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage

ENDED = Reference(resource="pods", name="ended", uid="3f1f9a6e-5d7b-4a26-9c57-1b6a3c0d6f11")
"""No pod has this UID. Servers keep its tombstone, since they do not know the kind."""

pytestmark = pytest.mark.cluster(HOLD_136)


async def decided(stage: Stage) -> tuple[Snapshot, WriteList]:
    """A claim that a running pod uses, and the write that adds a tombstone to its list."""
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1))
    await stage.until_running(1)
    on = await stage.claim()
    listed = on.status.reserved_for
    write = WriteList("", (*listed, tombstone(ENDED)), present=listed)
    return Snapshot(stage.clock.now(), NAMESPACE, "slice", on), write


async def relabel(stage: Stage) -> None:
    """Let the claim have another version with the same list."""
    await stage.patch(RESOURCECLAIMS, "slice", {"metadata": {"labels": {"changed": "since"}}})


@pytest.mark.core
async def test_a_tombstone_is_written_into_the_same_list_of_a_later_version(stage: Stage) -> None:
    snapshot, write = await decided(stage)
    await relabel(stage)
    await Writer(stage.client, stage.clock).apply(snapshot, write)
    on = await stage.claim()
    assert on.status.reserved_for == write.reserved_for
    assert on.status.allocation is not None
    with pytest.raises(Conflict):
        await Writer(stage.client, stage.clock).apply(snapshot, write)


@pytest.mark.core
async def test_no_tombstone_is_written_into_a_claim_that_is_being_deleted(stage: Stage) -> None:
    snapshot, write = await decided(stage)
    await stage.delete(RESOURCECLAIMS, "slice")
    assert (await stage.claim()).metadata.deleting
    with pytest.raises(Conflict):
        await Writer(stage.client, stage.clock).apply(snapshot, write)
    assert (await stage.claim()).status.reserved_for == write.present
