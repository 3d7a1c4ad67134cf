"""Taints that keep pods away, of nodes and of devices, and who tolerates them.

The rules are those of the scheduler (ToleratesTaint): an empty effect or key of a toleration stands
for any; an operator that we do not know counts as fulfilled.
"""

from __future__ import annotations

from collections.abc import Iterable

from claimctl.wire.claims import DeviceTaint
from claimctl.wire.nodes import Node, Taint, Toleration

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""A cordoned node is one with this taint, to whoever tolerates it."""


def taints_of(node: Node) -> tuple[Taint, ...]:
    """The node's taints, with that of a cordon."""
    return (*node.spec.taints, CORDON) if node.spec.unschedulable else node.spec.taints


def admits(taints: Iterable[Taint | DeviceTaint], tolerations: Iterable[Toleration]) -> bool:
    """Whether somebody with these tolerations may go where the taints are."""
    known = tuple(tolerations)
    return all(
        any(_tolerates(each, taint) for each in known)
        for taint in taints
        if taint.effect in BLOCKING_EFFECTS
    )


def _tolerates(toleration: Toleration, taint: Taint | DeviceTaint) -> bool:
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    if not toleration.key:
        return toleration.operator == "Exists"
    return toleration.operator not in {"", "Equal"} or toleration.value == taint.value
