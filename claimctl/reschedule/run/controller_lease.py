"""Whether a controller would give held claims up: read from its Lease."""

from __future__ import annotations

from datetime import UTC, datetime

from claimctl.downgrade.plans import LEASE_NAME
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound
from claimctl.reschedule.plan.observed import Controller
from claimctl.wire.coordination import Lease, is_held, renewed_at
from claimctl.wire.resources import LEASES

SKEW_SECONDS = 5.0
"""How far the controller's clock may be behind."""


async def read_controller(client: Client, namespace: str, now: datetime) -> Controller:
    """The controller that acts now.

    A controller that runs without leader election has no Lease, and counts as away.

    Raises:
        KubeError: a request failed, other than for a missing right.
    """
    where = f"Lease {namespace}/{LEASE_NAME}"
    try:
        lease = await client.get(LEASES, LEASE_NAME, namespace)
    except NotFound:
        return Controller(detail=f"there is no {where}: no controller runs, or one without it")
    except Forbidden as error:
        return Controller(detail=f"nobody knows whether a controller runs: {error}")
    return controller_of(lease, where, now)


def controller_of(lease: Lease, where: str, now: datetime) -> Controller:
    """What the Lease says; ``where`` names it."""
    if not lease.spec.holder_identity:
        return Controller(detail=f"the {where} has no holder, so no controller runs")
    if not is_held(lease, now, SKEW_SECONDS):
        since = renewed_at(lease).isoformat(timespec="seconds")
        return Controller(detail=f"no controller has renewed the {where} since {since}")
    acquired = lease.spec.acquire_time or lease.spec.renew_time or ""
    leads = datetime.fromisoformat(acquired).astimezone(UTC)
    return Controller(leads, f"the {where} is held by {lease.spec.holder_identity}")
