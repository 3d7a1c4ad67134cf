"""Read everything of claimctl in the cluster live, as input for ``judge``.

PodGroups are read before pods: a LIST of pods that begins later has every pod that a group may
still be needed for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from claimctl.commands.orphans.scan import ClaimScan as ClaimScan
from claimctl.commands.orphans.scan import scan_claims
from claimctl.commands.uninstall.model import AnnotatedWorkload, Scan, own_annotations
from claimctl.controller.dialect.api_versions import resources
from claimctl.downgrade.plans import controller_runs
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden
from claimctl.reschedule.plan.own_taints import own_taints
from claimctl.reschedule.plan.plan import PodRef
from claimctl.reschedule.run.avoiding import braked_pods
from claimctl.reschedule.shapes.records import RESCHEDULERECORDS
from claimctl.wire.base import Wire
from claimctl.wire.meta import ObjectHeader, ObjectMeta
from claimctl.wire.nodes import Taint
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DOWNGRADEPLANS,
    NODES,
    PODGROUPS,
    WORKLOADS,
    Resource,
    read_as,
)
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable


class JobTemplate(Wire, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


class CronJobSpec(Wire, frozen=True, kw_only=True):
    job_template: JobTemplate = JobTemplate()


class CronJob(ObjectHeader, frozen=True, kw_only=True):
    spec: CronJobSpec = CronJobSpec()


CRONJOBS = Resource("batch", "v1", "cronjobs", "CronJob", CronJob)


@dataclass(slots=True)
class _Found:
    """What was read so far, over all namespaces of the scope."""

    workloads: list[AnnotatedWorkload]
    cron_jobs: list[ObjectMeta]
    groups: list[PodGroup]
    claims: list[ClaimScan]
    unreadable: list[Unreadable]


async def scan(client: Client, clock: Clock, namespaces: Iterable[str]) -> Scan:
    """Scan these namespaces; all of them, and what has no namespace, if there are none.

    Raises:
        KubeError: a LIST failed.
    """
    scope = tuple(namespaces)
    tended, seen = await controller_runs(client, clock), _Found([], [], [], [], [])
    for namespace in scope or ("",):
        await _read(client, clock, namespace, seen)
    reservations: list[ClaimReservation] = []
    for part in seen.claims:
        reservations += part.reservations
        seen.unreadable += part.unreadable
    tainted = () if scope else await _tainted_nodes(client)
    served = await resources(client, f"/apis/{CLAIMRESERVATIONS.api_version}")
    return Scan(
        now=clock.now(),
        workloads=tuple(seen.workloads),
        reservations=tuple(reservations),
        claims=tuple(claim for part in seen.claims for claim in part.claims),
        groups=tuple(seen.groups),
        plans=() if scope else (await client.list_if_served(DOWNGRADEPLANS)).items,
        tainted=tainted or (),
        nodes_unreadable=tainted is None,
        avoiding=() if scope else await _avoiding(client),
        braked=() if scope else await _pods_with_brake(client),
        cron_jobs=tuple(seen.cron_jobs),
        unreadable=tuple(seen.unreadable),
        served=CLAIMRESERVATIONS.plural in served,
        tended=tended,
    )


async def _read(client: Client, clock: Clock, namespace: str, seen: _Found) -> None:
    for resource in WORKLOADS.values():
        # without anything but their metadata, so that each of them can be read
        headers = await client.list(read_as(resource, ObjectHeader), namespace)
        for header in headers.items:
            if own_annotations(header.metadata):
                seen.workloads.append(AnnotatedWorkload(resource, header.metadata))
    jobs = await client.list(CRONJOBS, namespace, partial=True)
    seen.cron_jobs += [
        job.metadata for job in jobs.items if own_annotations(job.spec.job_template.metadata)
    ]
    groups = await client.list_if_served(PODGROUPS, namespace)
    seen.groups += groups.items
    seen.unreadable += groups.unreadable
    seen.claims.append(await scan_claims(client, clock, namespace))


async def _tainted_nodes(client: Client) -> tuple[tuple[str, Taint], ...] | None:
    """The taints of nodes; None if the user may not read nodes."""
    try:
        nodes = await client.list(NODES, partial=True)
    except Forbidden:
        return None
    return tuple(own_taints(nodes.items))


async def _avoiding(client: Client) -> tuple[str, ...]:
    records = (await client.list_if_allowed(RESCHEDULERECORDS)).items
    return tuple(record.metadata.name for record in records if record.status.avoidances)


async def _pods_with_brake(client: Client) -> tuple[PodRef, ...]:
    try:
        return tuple(await braked_pods(client))
    except Forbidden:
        return ()
