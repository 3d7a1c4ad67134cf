"""Snapshots copy caches and observations; only ``observe`` notes something."""

from __future__ import annotations

from claimctl.controller.caches.informers import Caches
from claimctl.controller.keys import ClaimKey
from claimctl.controller.live_reads import Findings, Investigator
from claimctl.controller.observations.observations import Observations
from claimctl.controller.snapshots import Knowledge, Snapshots
from claimctl.embedded.options import Dialect
from claimctl.reservation.snapshot import Rules
from tests.support.builders import CLAIM, NAMESPACE
from tests.unit.controller.clock import HandClock
from tests.unit.controller.servers import server
from tests.unit.controller.test_claims import furnish
from tests.unit.controller.test_podgroups import filled

KEY = ClaimKey(NAMESPACE, CLAIM)


def snapshots(caches: Caches, clock: HandClock) -> Snapshots:
    made = server()
    knowledge = Knowledge(
        caches=caches,
        observations=Observations(clock),
        investigator=Investigator(made.client, caches.pods),
        clock=clock,
        rules=Rules(),
    )
    return Snapshots(knowledge)


async def test_a_deleted_reservation_ages_from_its_first_observation_and_not_from_a_copy() -> None:
    made, clock = server(Dialect.PODGROUP, kubernetes_version=(1, 37)), HandClock()
    furnish(made)
    made.admin.delete("claimreservations", NAMESPACE, "train-slice")
    copies = snapshots(await filled(made), clock)

    def age() -> float:
        (held,) = copies.build(KEY, Findings()).reservations
        assert held.reservation.metadata.deleting
        return held.withdrawn_age

    age()
    clock.time += 5
    assert age() == 0.0
    copies.observe(KEY, Findings())
    clock.time += 3
    assert age() == 3.0
    copies.observe(KEY, Findings())
    assert age() == 3.0
