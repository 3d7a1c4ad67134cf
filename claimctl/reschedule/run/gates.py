"""Whether the scheduler makes room for resizes itself (KEP-5836): asked, and not guessed.

The gate is alpha in Kubernetes 1.37. Older servers do not have it, and a scheduler is never newer
than its API server. A newer server tells its gates in its metrics.
"""

from __future__ import annotations

import re

from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound, Unauthorized
from claimctl.reschedule.plan.observed import Gate
from claimctl.wire.releases import Release

RESIZE_GATE = "InPlacePodVerticalScalingSchedulerPreemption"
GATE_SINCE = (1, 37)
METRICS = "/metrics"
_LINE = re.compile(
    rf'^kubernetes_feature_enabled\{{[^}}]*name="{RESIZE_GATE}"[^}}]*\}}\s+(\S+)', re.MULTILINE
)


async def resize_gate(client: Client, server: Release) -> Gate:
    """The gate of the API server.

    Args:
        server: its release; (0, 0) if it is not known.

    Raises:
        KubeError: a request failed, other than for a missing right.
    """
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
