"""What other programs do: does a controller give held claims up, and who makes room for resizes?

The controller is known by its Lease. The gate by which a scheduler makes room for resizes
(KEP-5836) is alpha in Kubernetes 1.37. Older servers do not have it, and a scheduler is never newer
than its API server. A newer server tells its gates in its metrics.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from claimctl.installation import LEASE_NAME
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound, Unauthorized
from claimctl.live_objects import is_held
from claimctl.wire.coordination import Lease, renewed_at
from claimctl.wire.releases import Release
from claimctl.wire.resources import LEASES
from claimctl.wire.times import moment
from claimctl_reschedule.plan.observed import ActingController, Gate

RESIZE_GATE = "InPlacePodVerticalScalingSchedulerPreemption"
GATE_SINCE = (1, 37)
METRICS = "/metrics"
_LINE = re.compile(
    rf'^kubernetes_feature_enabled\{{[^}}]*name="{RESIZE_GATE}"[^}}]*\}}\s+(\S+)', re.MULTILINE
)


async def resize_gate(client: Client, server: Release) -> Gate:
    """The gate of the API server, whose release is (0, 0) if it is not known. No error for a
    missing right."""
    if (0, 0) < server < GATE_SINCE:
        return Gate.OFF
    try:
        page = await client.get_raw(METRICS)
    except (Forbidden, Unauthorized, NotFound):
        return Gate.UNKNOWN
    return gate_in_metrics(page.decode(errors="replace"))


def gate_in_metrics(page: str) -> Gate:
    """The gate's state in the /metrics page; Off if it is absent."""
    line = _LINE.search(page)
    return Gate.ON if line is not None and float(line.group(1)) else Gate.OFF


SKEW_SECONDS = 5.0
"""How far the controller's clock may be behind."""


async def read_controller(client: Client, namespace: str, now: datetime) -> ActingController:
    """The controller that acts now. One that runs without leader election has no Lease, and counts
    as away. No error for a missing right."""
    where = f"Lease {namespace}/{LEASE_NAME}"
    try:
        lease = await client.find(LEASES, LEASE_NAME, namespace)
    except Forbidden as error:
        return ActingController(detail=f"nobody knows whether a controller runs: {error}")
    if lease is None:
        return ActingController(
            detail=f"there is no {where}: no controller runs, or one without it"
        )
    return controller_of(lease, where, now)


def controller_of(lease: Lease, where: str, now: datetime) -> ActingController:
    """What the Lease says; ``where`` names it."""
    if not lease.spec.holder_identity:
        return ActingController(detail=f"the {where} has no holder, so no controller runs")
    if not is_held(lease, now, SKEW_SECONDS):
        since = renewed_at(lease).isoformat(timespec="seconds")
        return ActingController(detail=f"no controller has renewed the {where} since {since}")
    leads = (moment(lease.spec.acquire_time) or renewed_at(lease)).astimezone(UTC)
    return ActingController(leads, f"the {where} is held by {lease.spec.holder_identity}")
