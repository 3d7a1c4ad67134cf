"""What can be told of a controller from its Lease."""

from __future__ import annotations

import pytest

from claimctl.commands.claims.election import Election, State, election, election_by
from claimctl.installation import Address
from claimctl.wire.coordination import Lease, LeaseSpec, micro_time
from claimctl.wire.meta import ObjectMeta
from tests.support.builders import NOW, after
from tests.support.claim_server import NAMESPACE as ML
from tests.support.claim_server import Server


def lease(holder: str = "one", renewed: float = -3.0, namespace: str = "claimctl-system") -> Lease:
    spec = LeaseSpec(
        holder_identity=holder, lease_duration_seconds=15, renew_time=micro_time(after(renewed))
    )
    return Lease(metadata=ObjectMeta(name="claimctl-controller", namespace=namespace), spec=spec)


WHERE = "Lease claimctl-system/claimctl-controller"


@pytest.mark.parametrize(
    ("lease", "state", "message"),
    [
        (lease(), State.ACTING, f"the {WHERE} is held by one"),
        (lease(renewed=40), State.ACTING, f"the {WHERE} is held by one"),
        (lease(renewed=-44), State.ACTING, f"the {WHERE} is held by one"),
        (
            lease(renewed=-1800),
            State.NOT_ACTING,
            f"the {WHERE} is held by one and has not been renewed for 30m",
        ),
        (lease(holder=""), State.NOT_ACTING, f"the {WHERE} has no holder"),
        (
            None,
            State.UNKNOWN,
            "no Lease claimctl-controller: no controller runs, or one without --leader-elect",
        ),
        (
            Lease(spec=LeaseSpec(holder_identity="")),
            State.NOT_ACTING,
            "the Lease / has no holder",
        ),
    ],
)
def test_the_lease_tells_who_is_elected(lease: Lease | None, state: State, message: str) -> None:
    assert election_by(lease, NOW) == Election(state, message)


async def test_a_lease_that_cannot_be_read_tells_nothing_of_who_is_elected() -> None:
    made = Server.with_unreadable("leases", "claimctl")
    meta = {"name": "claimctl-controller", "namespace": ML}
    made.admin.create("leases", {"metadata": meta, "spec": {}})
    found = await election(made.client, made.clock.now(), Address(ML))
    assert found.state is State.UNKNOWN
    assert "cannot be read" in found.message
