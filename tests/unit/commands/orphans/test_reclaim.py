"""Orphans on a server are handed over, or left with a note."""

from __future__ import annotations

from typing import cast

import pytest

from claimctl.cli.errors import CommandFailed
from claimctl.cli.successor import Successor
from claimctl.commands.orphans.adoption import adoptions
from claimctl.commands.orphans.model import Cause, Orphan
from claimctl.commands.orphans.reclaim import Outcome, Reclaim
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import FINALIZER
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS
from tests.support.claim_server import NAMESPACE, Server


class FakeController:
    """Does nothing, like a controller that cannot: a test does its work."""

    async def ensure(self) -> None:
        pass

    async def close(self) -> None:
        pass


def reclaim(server: Server) -> Reclaim:
    successor = cast("Successor", FakeController())
    return Reclaim(server.client, server.clock, "", successor, lambda _: None)


@pytest.mark.parametrize(
    ("plural", "path", "freed"),
    [
        ("pods", (), True),
        ("pods", ("spec", "resourceClaims"), False),
        ("pods", ("metadata",), False),
        ("claimreservations", ("spec", "workloadRef"), True),
        ("claimreservations", ("spec", "resourceClaimName"), False),
    ],
)
async def test_orphans_are_left_that_an_unreadable_object_may_concern(
    plural: str, path: tuple[str, ...], freed: bool
) -> None:
    """The object names another claim, where that can be read."""
    made = Server.with_unreadable(plural, "bad", *path)
    made.orphan()
    if plural == "pods":
        made.pod("bad", claim="other")
    else:
        made.reservation("bad", claim="other", workload="x")
    outcomes = [each.outcome for each in await reclaim(made).preview()]
    assert outcomes == ([Outcome.WOULD_FREE] if freed else [])


async def test_a_claim_that_the_controller_leaves_as_it_is_is_left_with_its_reason() -> None:
    made = Server.started()
    made.orphan()

    def tell(_: int) -> None:
        """The controller reports what forbids the release."""
        (name,) = (it["metadata"]["name"] for it in made.admin.list("claimreservations"))
        condition = {
            "type": "Released",
            "status": "False",
            "reason": "ConsumersLeft",
            "message": "1 pod uses the claim: a",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        patch = {"status": {"conditions": [condition]}}
        made.admin.patch("claimreservations", NAMESPACE, name, patch, "status")

    made.upon("delete", "claimreservations", tell)
    began = made.clock.monotonic()
    (found,) = await reclaim(made).run()
    assert found.outcome is Outcome.LEFT
    assert found.orphan.describe().endswith("ConsumersLeft: 1 pod uses the claim: a")
    assert 30 <= made.clock.monotonic() - began < 40
    (left,) = (await made.client.list(CLAIMRESERVATIONS, NAMESPACE)).items
    assert left.metadata.finalizers == (FINALIZER,)
    assert isinstance(left.status.reserved_for, Reference)


async def test_an_adoption_of_a_claim_that_is_gone_is_withdrawn() -> None:
    """An earlier run was killed after its first write, and the claim was deleted since."""
    made = Server.started()
    made.orphan()
    claim = await made.client.get(RESOURCECLAIMS, "slice", NAMESPACE)
    ((adoption, _),) = adoptions(claim, Orphan(Cause.ALLOCATED_TO_NOBODY, ""), None).values()
    await made.client.create(CLAIMRESERVATIONS, adoption, NAMESPACE)
    made.admin.delete("resourceclaims", NAMESPACE, "slice")

    def let_go(_: int) -> None:
        """The controller lets a withdrawn ClaimReservation go."""
        for there in made.admin.list("claimreservations"):
            if "deletionTimestamp" in there["metadata"]:
                patch = {"metadata": {"finalizers": None}}
                made.admin.patch("claimreservations", NAMESPACE, adoption.metadata.name, patch)

    made.upon("list", "claimreservations", let_go)
    assert await reclaim(made).run() == ()
    assert made.admin.list("claimreservations") == []


async def test_without_the_crds_the_command_says_how_to_get_them() -> None:
    made = Server.started(crds=False)
    made.orphan()
    with pytest.raises(CommandFailed, match="claimctl install --component crds"):
        await reclaim(made).run()
