"""Workloads whose annotation asks for a hold of a claim that no ClaimReservation names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound, UnreadableObject
from claimctl.reservation.annotation import Annotated, AnnotationPlan, plan
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RESERVE_ANNOTATION, WorkloadRef
from claimctl.wire.resources import REPLICASETS, WORKLOADS


async def asking(client: Client, claim: ResourceClaim, pods: Iterable[Pod]) -> tuple[str, ...]:
    """One line for each workload that asks for this claim, or whose pods it was generated for.

    A kind of workload that the user may not list has no line.
    """
    makers = await _makers(client, claim, pods)
    found = []
    async for kind, name, uid, wanted in _annotated(client, claim.metadata.namespace):
        if any(one.spec.resource_claim_name == claim.metadata.name for one in wanted.create):
            text = "asks for a hold of it, but there is no ClaimReservation yet"
            found.append(f"{kind} {name} {text} ({RESERVE_ANNOTATION})")
        elif uid in makers:
            found += [f"{kind} {name}: {problem.note}" for problem in wanted.problems]
    return tuple(found)


async def _annotated(
    client: Client, namespace: str
) -> AsyncIterator[tuple[str, str, str, AnnotationPlan]]:
    for (group, kind), resource in WORKLOADS.items():
        try:
            listed = await client.list(resource, namespace, partial=True)
        except (Forbidden, NotFound):
            continue
        for workload in listed.items:
            meta = workload.metadata
            if meta.annotation(RESERVE_ANNOTATION) is not None:
                ref = WorkloadRef(api_group=group, kind=kind, name=meta.name)
                wanted = plan(Annotated(ref, resource.api_version, workload))
                yield kind, meta.name, meta.uid, wanted


async def _makers(client: Client, claim: ResourceClaim, pods: Iterable[Pod]) -> frozenset[str]:
    """The UIDs of the workloads of the pods that the claim was generated for."""
    owners = {each.uid for each in claim.metadata.owner_references}
    found = set()
    for pod in pods:
        maker = pod.metadata.controller() if pod.metadata.uid in owners else None
        if maker is not None and maker.kind == "ReplicaSet":
            maker = await _owner_of_set(client, claim.metadata.namespace, maker)
        if maker is not None:
            found.add(maker.uid)
    return frozenset(found)


async def _owner_of_set(client: Client, namespace: str, made: Any) -> OwnerReference | None:
    try:
        found = await client.get(REPLICASETS, made.name, namespace)
    except (Forbidden, NotFound, UnreadableObject):
        return None
    return found.metadata.controller()
