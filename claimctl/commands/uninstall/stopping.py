"""Stop the controller and ``claimctl reschedule``, so that no other hold or taint is made."""

from __future__ import annotations

from typing import Any

from claimctl.cli.errors import CommandFailed
from claimctl.commands.uninstall import scan
from claimctl.installation import controller_runs
from claimctl.kube.client import Client
from claimctl.live_objects import Changed, change_object
from claimctl.reservation.facts.pods import is_done
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import DEPLOYMENTS, JOBS, PODS, Resource, read_as
from claimctl.wire.seams import Clock

CONTROLLER = "claimctl-controller"
"""The name of the controller's Deployment, however it was installed."""
STOP_SECONDS = 60.0
"""A controller that is killed leaves its Lease, which others may take after 15 s."""
WITHOUT_REPLICAS: dict[str, Any] = {"spec": {"replicas": 0}}
_POLL_SECONDS = 0.5


async def stop_controller(client: Client, clock: Clock, namespace: str) -> bool:
    """Scale the controller's Deployment to 0, and wait until no controller holds its Lease.

    Returns:
        False if there is no such Deployment.

    Raises:
        CommandFailed: a controller still holds its Lease after ``STOP_SECONDS``.
    """
    if not await patch_if_there(client, DEPLOYMENTS, CONTROLLER, namespace, WITHOUT_REPLICAS):
        return False
    end = clock.monotonic() + STOP_SECONDS
    while await controller_runs(client, clock, namespace):
        if clock.monotonic() >= end:
            raise CommandFailed(
                f"the Deployment {namespace}/{CONTROLLER} has no replicas, but a controller still "
                f"holds its Lease after {STOP_SECONDS:g} s: look for another controller"
            )
        await clock.sleep(_POLL_SECONDS)
    return True


async def patch_if_there(
    client: Client, resource: Resource[Any], name: str, namespace: str, patch: dict[str, Any]
) -> bool:
    """Patch an object whatever its version is; False if it is not there."""
    return (
        await change_object(client, resource, name, lambda _: patch, namespace) is not Changed.GONE
    )


RESCHEDULER = "claimctl-rescheduler"
"""The name of its CronJob or its Deployment, however it was installed."""
LABELS = "app.kubernetes.io/name=claimctl,app.kubernetes.io/component=rescheduler"
"""The labels of its pods."""
RESCHEDULER_SECONDS = 90.0
"""After SIGTERM a run finishes the write in hand and removes its taints. Its pod has 60 s."""
CRONJOBS = read_as(scan.CRONJOBS, ObjectHeader)
_SUSPENDED: dict[str, Any] = {"spec": {"suspend": True}}


async def stop_rescheduler(client: Client, clock: Clock, namespace: str) -> bool:
    """Suspend its CronJob and the CronJob's Jobs, scale its Deployment to 0, and wait for its pods.

    Returns:
        False if neither a CronJob nor a Deployment is there.

    Raises:
        CommandFailed: a pod still runs after ``RESCHEDULER_SECONDS``.
    """
    cron_job = await patch_if_there(client, CRONJOBS, RESCHEDULER, namespace, _SUSPENDED)
    deployment = await patch_if_there(client, DEPLOYMENTS, RESCHEDULER, namespace, WITHOUT_REPLICAS)
    if not (cron_job or deployment):
        return False
    end = clock.monotonic() + RESCHEDULER_SECONDS
    while True:
        # the CronJob may have made a Job a moment before it was suspended
        if cron_job:
            await _suspend_jobs(client, namespace)
        pods = (await client.list(PODS, namespace, label_selector=LABELS)).items
        running = [pod.metadata.name for pod in pods if not is_done(pod)]
        if not running:
            return True
        if clock.monotonic() >= end:
            raise CommandFailed(
                f"the pod {namespace}/{running[0]} of claimctl reschedule still runs after "
                f"{RESCHEDULER_SECONDS:g} s: delete it, and run this command again"
            )
        await clock.sleep(_POLL_SECONDS)


async def _suspend_jobs(client: Client, namespace: str) -> None:
    """Suspend the CronJob's Jobs that go on. Kubernetes deletes the pods of a Job that is
    suspended."""
    for job in (await client.list(JOBS, namespace)).items:
        owners = {(owner.kind, owner.name) for owner in job.metadata.owner_references}
        conditions = {it.type for it in job.status.conditions if it.status == "True"}
        goes_on = not job.spec.suspend and not conditions & {"Complete", "Failed"}
        if (CRONJOBS.kind, RESCHEDULER) in owners and goes_on:
            await patch_if_there(client, JOBS, job.metadata.name, namespace, _SUSPENDED)
