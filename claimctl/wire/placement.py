"""Node selectors, taints and tolerations, as kube-scheduler reads them."""

from __future__ import annotations

from collections.abc import Iterable

from claimctl.wire.claims import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from claimctl.wire.nodes import Node, Taint, Toleration


def selects(selector: NodeSelector | None, node: Node) -> bool:
    """Whether an allocation with this selector can be used on the node."""
    terms = selector.node_selector_terms if selector else None
    return not terms or any(matches_term(term, node) for term in terms)


def matches_term(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether the node fulfils every requirement of the term."""
    labels = node.metadata.labels or {}
    fields = {"metadata.name": node.metadata.name}
    return all(_holds(rule, labels) for rule in term.match_expressions or ()) and all(
        _holds(rule, fields) for rule in term.match_fields or ()
    )


def _holds(rule: NodeSelectorRequirement, values: dict[str, str]) -> bool:
    """Whether the requirement is fulfilled. An unknown operator counts as fulfilled."""
    value, wanted = values.get(rule.key), rule.values or ()
    match rule.operator:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, wanted, greater=rule.operator == "Gt")
    return True


def _compares(value: str | None, wanted: tuple[str, ...], *, greater: bool) -> bool:
    try:
        number, limit = int(value or ""), int(wanted[0])
    except (ValueError, IndexError):
        return False
    return number > limit if greater else number < limit


NO_EXECUTE = "NoExecute"
BLOCKING_EFFECTS = frozenset({"NoSchedule", NO_EXECUTE})
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that a cordoned node counts as having: pods may tolerate it."""


def taints_of(node: Node) -> tuple[Taint, ...]:
    """The node's taints, with ``CORDON`` if the node is cordoned."""
    return (*node.spec.taints, CORDON) if node.spec.unschedulable else node.spec.taints


PASSING_TAINTS = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
    }
)
"""The keys of taints with which controllers follow the state of a node: they come and go by
themselves."""


def lasting_taints(node: Node) -> tuple[Taint, ...]:
    """The node's taints, with ``CORDON``, and without those that pass by themselves."""
    return tuple(taint for taint in taints_of(node) if taint.key not in PASSING_TAINTS)


def admits(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """Whether the tolerations tolerate every taint that blocks scheduling."""
    known = tuple(tolerations)
    return all(
        any(tolerates(toleration, taint) for toleration in known)
        for taint in taints
        if taint.effect in BLOCKING_EFFECTS
    )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration is for this taint, whatever the taint's effect."""
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    if not toleration.key:
        return toleration.operator == "Exists"
    return toleration.operator not in {"", "Equal"} or toleration.value == taint.value
