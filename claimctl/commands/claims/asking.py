"""Workloads whose annotation asks for a hold of a claim that no ClaimReservation names."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound, UnreadableObject
from claimctl.reservation.annotation import Annotated, AnnotationPlan, Problem, plan
from claimctl.reservation.facts.workloads import named_claims
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RESERVE_ANNOTATION, WorkloadRef
from claimctl.wire.resources import REPLICASETS, WORKLOADS
from claimctl.wire.workloads import template_of


@dataclass(frozen=True, slots=True)
class Asker:
    """A workload whose annotations concern the claim."""

    line: str
    fix: str = ""
    """What corrects its annotation; '' if nothing is wrong with it."""


async def asking(client: Client, claim: ResourceClaim, pods: Iterable[Pod]) -> tuple[Asker, ...]:
    """The workloads that ask for this claim, or that name it and have a wrong annotation.

    A kind of workload that the user may not list is left out.
    """
    makers = await _makers(client, claim, pods)
    name, asking = claim.metadata.name, []
    async for kind, workload, wanted in _annotated_workloads(client, claim.metadata.namespace):
        meta = workload.metadata
        if any(reservation.spec.resource_claim_name == name for reservation in wanted.create):
            text = "asks for a hold of it, but there is no ClaimReservation yet"
            asking.append(Asker(f"{kind} {meta.name} {text} ({RESERVE_ANNOTATION})"))
        elif meta.uid in makers or name in named_claims(template_of(workload)):
            place = f"-n {meta.namespace} annotate {kind.lower()}/{meta.name}"
            asking += [
                Asker(f"{kind} {meta.name}: {problem.note}", _fix(problem, place))
                for problem in wanted.problems
            ]
    return tuple(asking)


def _fix(problem: Problem, place: str) -> str:
    annotation = re.split("[: ]", problem.note)[0]
    if annotation != RESERVE_ANNOTATION:
        return f"Remove the annotation, or correct its value: kubectl {place} {annotation}-"
    if '"*" matches' in problem.note:
        return "Name the claim by resourceClaimName in the pod template of the workload."
    return f"Correct the annotation: kubectl {place} --overwrite '{annotation}=*'"


async def _annotated_workloads(
    client: Client, namespace: str
) -> AsyncIterator[tuple[str, Any, AnnotationPlan]]:
    for (group, kind), resource in WORKLOADS.items():
        for workload in (await client.list_if_allowed(resource, namespace)).items:
            meta = workload.metadata
            if meta.annotation(RESERVE_ANNOTATION) is not None:
                ref = WorkloadRef(api_group=group, kind=kind, name=meta.name)
                wanted = plan(Annotated(ref, resource.api_version, workload))
                yield kind, workload, wanted


async def _makers(client: Client, claim: ResourceClaim, pods: Iterable[Pod]) -> frozenset[str]:
    """The UIDs of the workloads of the pods that the claim was generated for."""
    owners = {owner.uid for owner in claim.metadata.owner_references}
    uids = set()
    for pod in pods:
        maker = await maker_of(client, pod) if pod.metadata.uid in owners else None
        if maker is not None:
            uids.add(maker.uid)
    return frozenset(uids)


async def maker_of(client: Client, pod: Pod) -> OwnerReference | None:
    """The workload of the pod; its ReplicaSet, if the owner of that may not be read."""
    owner = pod.metadata.controller()
    if owner is not None and owner.kind == "ReplicaSet":
        with suppress(Forbidden, NotFound, UnreadableObject):
            replica_set = await client.get(REPLICASETS, owner.name, pod.metadata.namespace)
            return replica_set.metadata.controller() or owner
    return owner
