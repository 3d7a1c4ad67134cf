"""The kinds of workloads without structs of their own: their rules, and where they are served."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from claimctl.kube.client import Client
from claimctl.kube.discovery import Discovery
from claimctl.kube.errors import ApiError, Forbidden, NotFound
from claimctl.kube.informer import Informer
from claimctl.reservation.kinds.rules import Kind, Rule, problems_of, rule_of
from claimctl.reservation.kinds.shipped import shipped_rules
from claimctl.wire.access_reviews import Right
from claimctl.wire.resources import Resource
from claimctl.wire.workload_kinds import WorkloadKind
from claimctl.wire.workloads import CustomWorkload

VERBS = ("get", "list", "watch")
"""What the controller has to be allowed to do with a kind."""
AGGREGATE = "claimctl.io/aggregate-to-controller"
"""The label of ClusterRoles that add to the rights of the controller."""
_SCALED = "has(self.spec.replicas) && self.spec.replicas == 0"


@dataclass(frozen=True, slots=True)
class KindState:
    """What the controller knows of a kind."""

    rule: Rule
    resource: Resource[CustomWorkload] | None = None
    """Where the cluster serves the kind; None if it does not."""
    problem: str = ""
    """Why the state of its workloads is unknown, in one line; '' if it is known."""
    forbidden: bool = False
    """Whether the problem is that the client lacks a right."""


class KindCache:
    """The states of kinds, and an informer for each kind that can be followed."""

    def __init__(
        self,
        make: Callable[[Resource[CustomWorkload], Rule], Informer[Any]],
        informers: dict[Kind, Informer[Any]],
    ) -> None:
        """``informers`` has the informers of all kinds; this adds and removes those of its own."""
        self._make = make
        self._informers = informers
        self.on_follow: Callable[[Kind, Informer[Any]], None] = lambda kind, informer: None
        """Called with each new informer, before it runs."""
        self.states: dict[Kind, KindState] = {}
        self.seen_unserved: Callable[[Kind], None] = lambda kind: None
        """Called when pods have an owner of a kind that the cluster did not serve."""

    def informers(self) -> tuple[Informer[Any], ...]:
        return tuple(self._informers[kind] for kind in self.states if kind in self._informers)

    def follow(self, state: KindState) -> Informer[Any]:
        """A new informer for the kind, to be run by the caller."""
        assert state.resource is not None
        informer = self._make(state.resource, state.rule)
        self.states[state.rule.key] = state
        self._informers[state.rule.key] = informer
        self.on_follow(state.rule.key, informer)
        return informer

    def leave(self, state: KindState) -> None:
        """Drop the kind's cache: its workloads cannot be read, or need not be."""
        self._informers.pop(state.rule.key, None)
        self.states[state.rule.key] = state

    def problem(self, kind: Kind) -> str:
        """Why the state of the kind's workloads is unknown now; '' if it is known."""
        state, informer = self.states.get(kind), self._informers.get(kind)
        if state is None:
            return f"claimctl has not looked for {kind[1]} of {kind[0]} yet"
        if state.problem:
            return state.problem
        if informer is None or not informer.synced:
            trouble = informer.trouble if informer is not None else None
            return f"{kind[1]} of {kind[0]} is not listed yet{f': {trouble}' if trouble else ''}"
        if isinstance(informer.trouble, Forbidden | NotFound):
            return f"{kind[1]} of {kind[0]} cannot be read: {informer.trouble}"
        return ""

    def is_awaited(self, kind: Kind) -> bool:
        """Whether the first list of the kind's workloads has not arrived, and nothing says that it
        will not."""
        informer = self._informers.get(kind)
        refused = informer is not None and isinstance(informer.trouble, Forbidden | NotFound)
        return informer is not None and not informer.synced and not refused

    def note_owner(self, kind: Kind) -> None:
        """Note that a pod has an owner of the kind: so the cluster serves it, or did so."""
        state = self.states.get(kind)
        if state is not None and state.resource is None:
            self.seen_unserved(kind)

    def served(self, group: str, plural: str) -> Resource[CustomWorkload] | None:
        """The resource of that name, if the cluster serves it."""
        known = (state.resource for state in self.states.values() if state.resource is not None)
        return next((r for r in known if (r.group, r.plural) == (group, plural)), None)


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
    """The state of a kind now. Raises KubeError.

    Args:
        documents: the users' WorkloadKinds.
        verbs: what the client has to be allowed to do with the kind, in all namespaces.
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
    if missing := [verb async for verb in forbidden_verbs(client, resource, verbs)]:
        problem = missing_right(resource, missing)
        return KindState(rule, resource, problem=problem, forbidden=True)
    return KindState(rule, resource)


async def _default_rule(discovery: Discovery, resource: Resource[Any]) -> Rule:
    """The rule of a kind that nobody has described: only a scale of 0 is idle."""
    idle = _SCALED if await discovery.has_scale(resource) else ""
    return Rule(resource.group, resource.kind, resource.plural, idle=idle, source="default")


async def forbidden_verbs(
    client: Client, resource: Resource[Any], verbs: Iterable[str]
) -> AsyncIterator[str]:
    """The verbs that the client is not allowed to use on the kind, in all namespaces."""
    for verb in verbs:
        try:
            allowed = await client.allowed(Right(verb, resource.group, resource.plural))
        except ApiError:
            return  # not known: the reads will show it
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
