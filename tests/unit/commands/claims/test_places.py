"""What the cluster publishes, as far as the user may list it."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl.commands.claims.device_classes import CountedSlice
from claimctl.commands.claims.places import not_known, read_places
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.claim_server import NAMESPACE, Server
from tests.support.waiting import has_devices, publish


def furnished() -> Server:
    server = Server.started()
    has_devices(server, "slice")
    publish(server, "slice")
    server.admin.create("nodes", {"metadata": {"name": "n1"}})
    return server


async def claim(server: Server) -> ResourceClaim:
    return await server.client.get(RESOURCECLAIMS, "slice", NAMESPACE)


async def test_everything_is_read_for_the_judgement() -> None:
    server = furnished()
    places = await read_places(server.client)
    assert places.nodes is not None
    assert places.classes is not None
    assert places.slices is not None
    assert (set(places.nodes), set(places.classes), places.complete) == ({"n1"}, {"gpu"}, True)
    assert all(isinstance(piece, CountedSlice) for piece in places.slices)
    assert not_known(await claim(server), places) == ()


@pytest.mark.parametrize(
    ("plural", "told"),
    [
        ("resourceslices",
         ("you may not list resourceslices: it is not known whether its devices are published",)),
        ("nodes", ("you may not list nodes: it is not known whether its node takes pods",)),
        ("deviceclasses", ()),
    ],
)  # fmt: skip
async def test_what_may_not_be_listed_is_not_known(plural: str, told: tuple[str, ...]) -> None:
    server = furnished()

    def hook(point: FaultPoint) -> Fault | None:
        refused = point.plural == plural and point.verb == "list"
        return Fault(status=403, reason="Forbidden", message="no") if refused else None

    server.handler.fault = hook
    places = await read_places(server.client)
    known = {
        "resourceslices": places.slices,
        "nodes": places.nodes,
        "deviceclasses": places.classes,
    }
    assert [name for name, what in known.items() if what is None] == [plural]
    assert not_known(await claim(server), places) == told


async def test_nothing_is_to_be_known_of_a_claim_without_devices() -> None:
    server = furnished()
    free = ResourceClaim(metadata=(await claim(server)).metadata)
    assert not_known(free, await read_places(server.client)) == ()


async def test_a_class_that_cannot_be_read_may_be_any() -> None:
    server = furnished()
    server.spoil("deviceclasses", "gpu", "spec", "selectors")
    assert (await read_places(server.client)).classes is None
