"""The kinds of workloads without structs of their own: their rules, and where they are served."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from claimctl.kube.errors import Forbidden, NotFound
from claimctl.kube.informer import Informer
from claimctl.reservation.kinds.rules import Kind, Rule
from claimctl.wire.resources import Resource
from claimctl.wire.workloads import CustomWorkload


@dataclass(frozen=True, slots=True)
class KindState:
    """What the controller knows of a kind."""

    rule: Rule
    resource: Resource[CustomWorkload] | None = None
    """Where the cluster serves the kind; None if it does not."""
    problem: str = ""
    """Why the state of its workloads is unknown, in one line; '' if it is known."""


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
        self._on_follow: list[Callable[[Kind, Informer[Any]], None]] = []
        self.states: dict[Kind, KindState] = {}

    def on_follow(self, handler: Callable[[Kind, Informer[Any]], None]) -> None:
        """Call ``handler`` with each new informer, before it runs."""
        self._on_follow.append(handler)

    def informers(self) -> tuple[Informer[Any], ...]:
        return tuple(self._informers[kind] for kind in self.states if kind in self._informers)

    def follow(self, state: KindState) -> Informer[Any]:
        """A new informer for the kind, to be run by the caller."""
        assert state.resource is not None
        informer = self._make(state.resource, state.rule)
        self.states[state.rule.key] = state
        self._informers[state.rule.key] = informer
        for handler in self._on_follow:
            handler(state.rule.key, informer)
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

    def of(self, resource: Resource[Any]) -> KindState | None:
        """The state of the kind of a resource."""
        return self.states.get((resource.group, resource.kind))

    def served(self, group: str, plural: str) -> Resource[CustomWorkload] | None:
        """The resource of that name, if the cluster serves it."""
        for state in self.states.values():
            if state.resource is not None and (group, plural) == (
                state.resource.group,
                state.resource.plural,
            ):
                return state.resource
        return None
