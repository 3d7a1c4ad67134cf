"""ClaimReservations are annotated whoever writes them meanwhile."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault

from claimctl.commands.claims.explanation import explain
from claimctl.commands.claims.release_request import annotate_each
from claimctl.kube.errors import Conflict
from claimctl.live_objects import CHANGE_TRIES
from tests.support.claim_server import NAMESPACE, Server


async def annotate(server: Server) -> None:
    explanation = await explain(server.client, NAMESPACE, "slice", server.clock.now())
    await annotate_each(server.client, explanation, "example.com/asked", lambda _: "yes")


def touched(server: Server, times: int) -> None:
    """Let the reservation be written by somebody else before each of the first requests."""

    def touch(number: int) -> Fault | None:
        if number <= times:
            label = {"metadata": {"labels": {"n": str(number)}}}
            server.admin.patch("claimreservations", NAMESPACE, "one", label)
        return None

    server.upon("patch", "claimreservations", touch)


async def test_a_reservation_that_was_written_meanwhile_is_read_again() -> None:
    server = Server.started()
    server.claim()
    server.reservation("one")
    touched(server, 2)
    await annotate(server)
    made = server.admin.get("claimreservations", NAMESPACE, "one")
    assert made["metadata"]["annotations"] == {"example.com/asked": "yes"}


async def test_a_reservation_that_never_holds_still_is_given_up() -> None:
    server = Server.started()
    server.claim()
    server.reservation("one")
    touched(server, CHANGE_TRIES)
    with pytest.raises(Conflict):
        await annotate(server)
