"""Workloads whose annotation asks for a hold of a claim that no ClaimReservation names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from claimctl.cli.kinds import KindReader
from claimctl.kube.client import Client
from claimctl.live_objects import list_if_allowed
from claimctl.parallel import mapped
from claimctl.reservation.annotation import Annotated, Problem, plan
from claimctl.reservation.facts.workloads import judged, named_claims
from claimctl.reservation.kinds.rules import Rule
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RESERVE_ANNOTATION, WorkloadRef
from claimctl.wire.resources import WORKLOADS, Resource
from claimctl.wire.workloads import template_of


@dataclass(frozen=True, slots=True)
class Asker:
    """A workload whose annotations concern the claim."""

    line: str
    fix: str = ""
    """What corrects its annotation; '' if nothing is wrong with it."""


@dataclass(frozen=True, slots=True)
class AnnotatedObject:
    """A workload with its resource, and with its rule if its pod template is not read."""

    resource: Resource[Any]
    workload: Any
    rule: Rule | None


async def asking(
    kinds: KindReader,
    claim: ResourceClaim,
    pods: Iterable[Pod],
    annotated_objects: Iterable[AnnotatedObject],
) -> tuple[Asker, ...]:
    """The workloads that ask for this claim, or that name it and have a wrong annotation."""
    chains = {pod.metadata.uid: await kinds.chain(pod) for pod in pods}
    above = {uid: {owner.uid for owner in chain} for uid, chain in chains.items()}
    users = frozenset().union(*above.values())
    generated_for = {owner.uid for owner in claim.metadata.owner_references}
    makers = frozenset().union(*(above[uid] for uid in generated_for & above.keys()))
    meta, asking = claim.metadata, []
    for it in annotated_objects:
        resource, workload, rule = it.resource, it.workload, it.rule
        name, place, kind = workload.metadata.name, workload.metadata.namespace, resource.kind
        ref = WorkloadRef(api_group=resource.group, kind=kind, name=name)
        uid, names = workload.metadata.uid, named_claims(template_of(workload))
        if rule is None:
            annotated = Annotated(ref, resource.api_version, workload)
        else:
            names = (meta.name,) if uid in users else ()
            annotated = Annotated(
                ref, resource.api_version, judged(workload, rule), by_pods=frozenset(names)
            )
        authority = await kinds.who_decides(RESERVE_ANNOTATION, workload.metadata)
        wanted = plan(replace(annotated, authority=authority))
        if any(made.spec.resource_claim_name == meta.name for made in wanted.create):
            text = "asks for a hold of it, but there is no ClaimReservation yet"
            asking.append(Asker(f"{kind} {name} {text} ({RESERVE_ANNOTATION})"))
        elif uid in makers or meta.name in names:
            where = f"-n {place} annotate {kind.lower()}/{name}"
            asking += [
                Asker(f"{kind} {name}: {problem.note}", _fix(problem, where))
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


async def annotated_in(
    client: Client, kinds: KindReader, namespace: str
) -> tuple[AnnotatedObject, ...]:
    """The annotated workloads of a namespace. A kind that the user may not list is left out."""
    rules = {state.resource: state.rule for state in await kinds.served() if state.resource}
    resources: tuple[Resource[Any], ...] = (*WORKLOADS.values(), *rules)
    read = partial(list_if_allowed, client, namespace=namespace)
    return tuple(
        AnnotatedObject(resource, workload, rules.get(resource))
        for resource, listed in zip(resources, await mapped(read, resources, 8), strict=True)
        for workload in listed.items
        if workload.metadata.annotation(RESERVE_ANNOTATION) is not None
    )
