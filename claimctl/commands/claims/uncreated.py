"""Workloads that hold a claim and cannot create pods, as where a quota forbids them.

Only a Deployment says so in its status, by the condition that it takes over from its ReplicaSet.
For a StatefulSet and a Job there are Events, which others may write, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.reservation.facts.snapshot import Held
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.wire.meta import ObjectHeader, find_condition
from claimctl.wire.resources import DEPLOYMENTS, read_as
from claimctl.wire.workloads import JobStatus

REPLICA_FAILURE = "ReplicaFailure"


class ReportingDeployment(ObjectHeader, frozen=True, kw_only=True):
    """A Deployment with its conditions."""

    status: JobStatus = JobStatus()


_REPORTING = read_as(DEPLOYMENTS, ReportingDeployment)


async def uncreated(client: Client, held: Iterable[Held]) -> dict[str, str]:
    """What Deployments that want pods report about pods they cannot create, by their UIDs."""
    lines: dict[str, str] = {}
    for holder in held:
        ref, workload = holder.reservation.spec.workload_ref, holder.workload
        kind = (ref.api_group, ref.kind)
        if kind == (DEPLOYMENTS.group, DEPLOYMENTS.kind) and workload.phase is WorkloadPhase.ACTIVE:
            try:
                seen = await client.get(_REPORTING, ref.name, holder.reservation.metadata.namespace)
            except KubeError:  # it is gone by now, or its conditions cannot be read
                continue
            failure = find_condition(seen.status.conditions, REPLICA_FAILURE)
            if failure is not None and failure.status == "True":
                why = f"({failure.reason}): {failure.message}"
                lines[workload.uid] = f"{ref.kind} {ref.name} cannot create pods {why}"
    return lines
