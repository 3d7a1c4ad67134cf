"""Stop ``claimctl reschedule`` in the cluster, so that it cannot taint another node."""

from __future__ import annotations

from typing import Any

from claimctl.commands.uninstall.stopping import WITHOUT_REPLICAS, StillRuns, patch_if_there
from claimctl.kube.client import Client
from claimctl.reservation.facts.pods import is_done
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import DEPLOYMENTS, JOBS, PODS, Resource
from claimctl.wire.seams import Clock
from claimctl.wire.workloads import Job

RESCHEDULER = "claimctl-rescheduler"
"""The name of its CronJob or its Deployment, however it was installed."""
LABELS = "app.kubernetes.io/name=claimctl,app.kubernetes.io/component=rescheduler"
"""The labels of its pods."""
STOP_SECONDS = 90.0
"""After SIGTERM a run finishes the write in hand and removes its taints. Its pod has 60 s."""
_POLL_SECONDS = 0.5
CRONJOBS = Resource("batch", "v1", "cronjobs", "CronJob", ObjectHeader)
_SUSPENDED: dict[str, Any] = {"spec": {"suspend": True}}


async def stop_rescheduler(client: Client, clock: Clock, namespace: str) -> bool:
    """Suspend its CronJob and the CronJob's Jobs, scale its Deployment to 0, and wait for its pods.

    Returns:
        False if neither a CronJob nor a Deployment is there.

    Raises:
        StillRuns: a pod still runs after ``STOP_SECONDS``.
        KubeError: the caller may not patch one of them, or a request failed.
    """
    cron_job = await patch_if_there(client, CRONJOBS, RESCHEDULER, namespace, _SUSPENDED)
    loop = await patch_if_there(client, DEPLOYMENTS, RESCHEDULER, namespace, WITHOUT_REPLICAS)
    if not (loop or cron_job):
        return False
    end = clock.monotonic() + STOP_SECONDS
    while True:
        # the CronJob may have made a Job a moment before it was suspended
        if cron_job:
            await _suspend_jobs(client, namespace)
        running = await _running(client, namespace)
        if not running:
            return True
        if clock.monotonic() >= end:
            raise StillRuns(
                f"the pod {namespace}/{running[0]} of claimctl reschedule still runs after "
                f"{STOP_SECONDS:g} s: delete it, and run this command again"
            )
        await clock.sleep(_POLL_SECONDS)


async def _suspend_jobs(client: Client, namespace: str) -> None:
    """The pods of a Job that is suspended are deleted."""
    for job in (await client.list(JOBS, namespace)).items:
        if _is_of_rescheduler(job) and not job.spec.suspend and not _has_ended(job):
            await patch_if_there(client, JOBS, job.metadata.name, namespace, _SUSPENDED)


def _is_of_rescheduler(job: Job) -> bool:
    owners = job.metadata.owner_references
    return any((owner.kind, owner.name) == (CRONJOBS.kind, RESCHEDULER) for owner in owners)


def _has_ended(job: Job) -> bool:
    ends = ("Complete", "Failed")
    return any(
        condition.type in ends and condition.status == "True" for condition in job.status.conditions
    )


async def _running(client: Client, namespace: str) -> list[str]:
    """The names of its pods that have not ended."""
    pods = await client.list(PODS, namespace, label_selector=LABELS)
    return [pod.metadata.name for pod in pods.items if not is_done(pod)]
