"""What is known of a kind of workloads: its rule, where the cluster serves it, what is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from claimctl.controller.caches.kinds import KindState
from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import ApiError
from claimctl.reservation.kinds.rules import Kind, Rule, problems_of, rule_of
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.wire.access_reviews import Right
from claimctl.wire.resources import Resource
from claimctl.wire.workload_kinds import WorkloadKind

VERBS = ("get", "list", "watch")
"""What the controller has to be allowed to do with a kind."""
AGGREGATE = "claimctl.io/aggregate-to-controller"
"""The label of ClusterRoles that add to the rights of the controller."""
_SCALED = "has(self.spec.replicas) && self.spec.replicas == 0"


def rules_by_kind(documents: Iterable[WorkloadKind]) -> dict[Kind, WorkloadKind]:
    """The users' WorkloadKinds by kind; of two, the one whose name sorts first."""
    ordered = sorted(documents, key=lambda document: document.metadata.name, reverse=True)
    return {(document.spec.group, document.spec.kind): document for document in ordered}


async def state_of(
    client: Client,
    discovery: Discovery,
    kind: Kind,
    documents: Mapping[Kind, WorkloadKind],
    verbs: Iterable[str] = (),
) -> KindState:
    """The state of a kind now.

    Args:
        documents: the users' WorkloadKinds.
        verbs: what the client has to be allowed to do with the kind, in all namespaces.

    Raises:
        KubeError: a request failed.
    """
    document = documents.get(kind)
    rule = shipped_rules().get(kind)
    if document is not None:
        name = f"WorkloadKind {document.metadata.name}"
        rule = rule_of(document, name)
        for field, problem in problems_of(document):
            return KindState(rule, problem=f"{name}: {field} {problem}")
    resource = await discovery.workload(kind)
    if resource is None:
        return KindState(rule or Rule(*kind, ""), problem=unserved(kind))
    rule = rule or await _default_rule(discovery, resource)
    if not resource.namespaced:
        return KindState(rule, problem=f"{kind[1]} of {kind[0]} is not namespaced")
    if rule.plural != resource.plural:
        expected = f"{resource.plural}.{resource.group}"
        problem = f"{rule.source}: metadata.name has to be {expected}"
        return KindState(rule, resource, problem)
    if missing := [verb async for verb in _forbidden(client, resource, verbs)]:
        return KindState(rule, resource, problem=missing_right(resource, missing))
    return KindState(rule, resource)


async def _default_rule(discovery: Discovery, resource: Resource[Any]) -> Rule:
    """The rule of a kind that nobody has described: only a scale of 0 is idle."""
    idle = _SCALED if await discovery.has_scale(resource) else ""
    return Rule(resource.group, resource.kind, resource.plural, idle=idle, source="default")


async def _forbidden(
    client: Client, resource: Resource[Any], verbs: Iterable[str]
) -> AsyncIterator[str]:
    for verb in verbs:
        try:
            allowed = await client.allowed(Right(verb, resource.group, resource.plural))
        except ApiError:
            return
        if not allowed:
            yield verb


def missing_right(resource: Resource[Any], verbs: list[str]) -> str:
    """The problem of a kind that the controller may not read, with what to do, in one line."""
    return (
        f"the controller may not {', '.join(verbs)} {resource.plural}.{resource.group}: bind a "
        f"ClusterRole with that right, or give it the label {AGGREGATE}"
    )


def unserved(kind: Kind) -> str:
    return f"the cluster does not serve {kind[1]} of {kind[0]}"
