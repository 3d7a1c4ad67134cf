"""Reads the workloads for which ClaimReservations hold a claim, each once: whether it wants pods,
and whether it can create them, as where a quota forbids that.

Only a Deployment says so in its status, by the condition that it takes over from its ReplicaSet.
For a StatefulSet and a Job there are Events, which others may write, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from claimctl.cli.kinds import KindReader
from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound, UnreadableObject
from claimctl.reservation.facts.ordinals import for_ordinal
from claimctl.reservation.facts.snapshot import Held
from claimctl.reservation.facts.workloads import (
    WorkloadPhase,
    WorkloadState,
    observe,
    orphaned_replica_sets_of,
)
from claimctl.wire.base import EMPTY, decode, null_is_empty
from claimctl.wire.meta import find_condition
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import DEPLOYMENTS, REPLICASETS, WORKLOADS, Resource, read_as
from claimctl.wire.workloads import Deployment, JobStatus

REPLICA_FAILURE = "ReplicaFailure"


class ReportingDeployment(Deployment, frozen=True, kw_only=True):
    """A Deployment with its status, which is decoded later: who cannot read it can judge it."""

    status: msgspec.Raw = EMPTY

    def __post_init__(self) -> None:
        null_is_empty(self, "status", self.status)


_REPORTING = read_as(DEPLOYMENTS, ReportingDeployment)


@dataclass(frozen=True, slots=True)
class Holder:
    """A ClaimReservation with its workload.

    Attributes:
        failure: what the workload reports about pods that it wants and cannot create; '' for
            nothing.
    """

    held: Held
    failure: str = ""


async def read_holder(
    client: Client, kinds: KindReader, reservation: ClaimReservation, pods: Iterable[Pod]
) -> Holder:
    """Read the workload of a ClaimReservation. Raises KubeError.

    Args:
        pods: those that name the claim.
    """
    ref = reservation.spec.workload_ref
    resource = WORKLOADS.get((ref.api_group, ref.kind))
    if resource is DEPLOYMENTS:
        return await _read(client, kinds, _REPORTING, reservation)
    if resource is not None:
        return await _read(client, kinds, resource, reservation)
    state, served = await kinds.workload(reservation, pods)
    rule = (await kinds.state((ref.api_group, ref.kind))).rule
    version = served.api_version if served is not None else ""
    return Holder(Held(reservation, state, api_version=version, served_as=rule.plural))


async def _read(
    client: Client, kinds: KindReader, resource: Resource[Any], reservation: ClaimReservation
) -> Holder:
    """Read a workload of a kind that claimctl reads itself, without a rule."""
    ref, namespace = reservation.spec.workload_ref, reservation.metadata.namespace
    claim, failure, workload = reservation.spec.resource_claim_name, "", None
    try:
        workload = await client.get(resource, ref.name, namespace)
        kinds.know((workload.metadata,))
        if isinstance(workload, ReportingDeployment):
            failure = _failure(workload)
            workload = Deployment(metadata=workload.metadata, spec=workload.spec)
        deleting = workload.metadata.deleting
        sets = await client.list(REPLICASETS, namespace, partial=True) if deleting else None
        state = observe(workload, claim, sets.items if sets is not None else None)
    except UnreadableObject as error:
        state = WorkloadState(
            WorkloadPhase.UNREADABLE,
            uid=error.unreadable.uid,
            confirmed=True,
            problem=error.unreadable.describe(),
        )
    except NotFound:
        recorded = reservation.status.reserved_for
        left = (await client.list(REPLICASETS, namespace, partial=True)).items
        state = WorkloadState(
            WorkloadPhase.ABSENT,
            orphaned_replica_sets=orphaned_replica_sets_of(
                recorded.uid if recorded else "", claim, left
            ),
        )
    state = for_ordinal(state, workload, reservation.spec)
    wants_pods = state.phase is WorkloadPhase.ACTIVE
    return Holder(Held(reservation, state), failure if wants_pods else "")


def _failure(workload: ReportingDeployment) -> str:
    """What the Deployment reports about pods that it cannot create."""
    with suppress(msgspec.DecodeError):  # of conditions that cannot be read there is no news
        conditions = decode(workload.status, JobStatus).conditions if workload.status else ()
        failure = find_condition(conditions, REPLICA_FAILURE)
        if failure is not None and failure.status == "True":
            why = f"({failure.reason}): {failure.message}"
            return f"Deployment {workload.metadata.name} cannot create pods {why}"
    return ""
