"""Stop the controller that is installed, so that it cannot make another hold."""

from __future__ import annotations

from typing import Any

from claimctl.downgrade.plans import controller_runs
from claimctl.kube.client import Changed, Client
from claimctl.wire.resources import DEPLOYMENTS, Resource
from claimctl.wire.seams import Clock

CONTROLLER = "claimctl-controller"
"""The name of the controller's Deployment, however it was installed."""
STOP_SECONDS = 60.0
"""A controller that is killed leaves its Lease, which others may take after 15 s."""
WITHOUT_REPLICAS: dict[str, Any] = {"spec": {"replicas": 0}}
_POLL_SECONDS = 0.5


class StillRuns(Exception):
    """A controller goes on although its Deployment has no replicas. The text is one line."""


async def stop_controller(client: Client, clock: Clock, namespace: str) -> bool:
    """Scale the controller's Deployment to 0, and wait until no controller holds its Lease.

    Returns:
        False if there is no such Deployment.

    Raises:
        StillRuns: a controller still holds its Lease after ``STOP_SECONDS``.
        KubeError: the caller may not patch the Deployment, or a request failed.
    """
    if not await patch_if_there(client, DEPLOYMENTS, CONTROLLER, namespace, WITHOUT_REPLICAS):
        return False
    end = clock.monotonic() + STOP_SECONDS
    while await controller_runs(client, clock):
        if clock.monotonic() >= end:
            raise StillRuns(
                f"the Deployment {namespace}/{CONTROLLER} has no replicas, but a controller still "
                f"holds its Lease after {STOP_SECONDS:g} s: look for another controller"
            )
        await clock.sleep(_POLL_SECONDS)
    return True


async def patch_if_there(
    client: Client, resource: Resource[Any], name: str, namespace: str, patch: dict[str, Any]
) -> bool:
    """Patch an object whatever its version is; False if it is not there."""
    return await client.change(resource, name, lambda _: patch, namespace) is not Changed.GONE
