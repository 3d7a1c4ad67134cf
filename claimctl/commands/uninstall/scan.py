"""Read everything of claimctl in the cluster live, as input for ``judge``.

PodGroups are read before pods: a LIST of pods that begins later has every pod that a group may
still be needed for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from claimctl.cli.kinds import KindReader
from claimctl.commands.orphans.scan import ClaimScan, scan_claims
from claimctl.commands.uninstall.model import AnnotatedWorkload, Scan, own_annotations
from claimctl.commands.uninstall.sweep import braked_pods
from claimctl.installation import (
    INSTALLED,
    STICKY_POLICIES,
    PolicyBinding,
    controller_runs,
    policy_bindings,
)
from claimctl.kube.client import Client
from claimctl.kube.codec import Listing
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import Forbidden
from claimctl.live_objects import list_if_allowed, list_if_served
from claimctl.reservation.facts.pods import is_done
from claimctl.wire import resources as wire
from claimctl.wire.base import Wire
from claimctl.wire.meta import ObjectHeader, ObjectMeta
from claimctl.wire.nodes import Taint
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import STICKY_CLAIMS_ANNOTATION
from claimctl.wire.seams import Clock
from claimctl.wire.traces import RECORDS, own_taints
from claimctl.wire.unreadable import Unreadable


class JobTemplate(Wire, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


class CronJobSpec(Wire, frozen=True, kw_only=True):
    job_template: JobTemplate = JobTemplate()


class CronJob(ObjectHeader, frozen=True, kw_only=True):
    spec: CronJobSpec = CronJobSpec()


CRONJOBS = wire.Resource("batch", "v1", "cronjobs", "CronJob", CronJob)


async def scan(
    client: Client,
    clock: Clock,
    namespaces: Iterable[str],
    *,
    lease_namespace: str = INSTALLED,
    believing: bool = False,
) -> Scan:
    """Scan these namespaces; all of them, and what has no namespace, if there are none."""
    scope, tended = tuple(namespaces), await controller_runs(client, clock, lease_namespace)
    workloads: list[AnnotatedWorkload] = []
    cron_jobs: list[ObjectMeta] = []
    groups: list[PodGroup] = []
    unreadable: list[Unreadable] = []
    scans: list[ClaimScan] = []
    custom = [state.resource for state in await KindReader(client).served()]
    kinds: list[wire.Resource[Any]] = [*wire.WORKLOADS.values(), *filter(None, custom)]
    for namespace in scope or ("",):
        for resource in kinds:
            headers = await client.list(
                wire.read_as(resource, ObjectHeader), namespace, partial=True
            )
            unreadable += headers.unreadable
            metas = (header.metadata for header in headers.items)
            workloads += (
                AnnotatedWorkload(resource, meta) for meta in metas if own_annotations(meta)
            )
        jobs = await client.list(CRONJOBS, namespace, partial=True)
        cron_jobs += (
            it.metadata for it in jobs.items if own_annotations(it.spec.job_template.metadata)
        )
        listing = await list_if_served(client, wire.PODGROUPS, namespace)
        groups += listing.items
        unreadable += listing.unreadable
        scans.append(await scan_claims(client, clock, namespace, believing=believing))
        unreadable += scans[-1].unreadable
    tainted = () if scope else await _tainted_nodes(client)
    braked: tuple[ObjectMeta, ...] = ()
    if not scope:
        with suppress(Forbidden):
            braked = await braked_pods(client)
    records = Listing((), "") if scope else await list_if_allowed(client, RECORDS)
    own = wire.CLAIMRESERVATIONS
    discovery = Discovery(client)
    served = await discovery.plurals(own.group, own.version)
    noted = tuple(_noted(scans))
    reservations = tuple(made for part in scans for made in part.reservations)
    sticky = bool(noted) or any(made.spec.sticky is not None for made in reservations)
    return Scan(
        now=clock.now(),
        workloads=tuple(workloads),
        reservations=reservations,
        claims=tuple(claim for part in scans for claim in part.claims),
        groups=tuple(groups),
        plans=() if scope else (await list_if_served(client, wire.DOWNGRADEPLANS)).items,
        tainted=tainted or (),
        nodes_unreadable=tainted is None,
        avoiding=tuple(
            record.metadata.name for record in records.items if record.status.avoidances
        ),
        tainting=tuple(record.metadata.name for record in records.items if record.status.taints),
        braked=braked,
        bindings=await _bindings(client, discovery) if sticky or not scope else (),
        noted=noted,
        scoped=bool(scope),
        cron_jobs=tuple(cron_jobs),
        unreadable=tuple(unreadable),
        served=own.plural in served,
        tended=tended,
    )


def _noted(scans: Iterable[ClaimScan]) -> Iterator[Pod]:
    """The pods that have the note of the policy for sticky claims, and have not ended."""
    users = {pod.metadata.uid: pod for it in scans for using in it.users.values() for pod in using}
    for pod in users.values():
        noted = pod.metadata.annotation(STICKY_CLAIMS_ANNOTATION) is not None
        if noted and not (pod.metadata.deleting or is_done(pod)):
            yield pod


async def _bindings(client: Client, discovery: Discovery) -> tuple[PolicyBinding, ...]:
    """What puts the policies for sticky claims in force."""
    resource = await policy_bindings(discovery)
    if resource is None:
        return ()
    there = await list_if_served(client, resource)
    return tuple(it for it in there.items if it.spec.policy_name in STICKY_POLICIES)


async def _tainted_nodes(client: Client) -> tuple[tuple[str, Taint], ...] | None:
    """The taints of nodes; None if the user may not read nodes."""
    try:
        nodes = await client.list(wire.NODES, partial=True)
    except Forbidden:
        return None
    return tuple(own_taints(nodes.items))
