"""Required affinity between pods, as the scheduler's plugin InterPodAffinity judges it.

Anti-affinity is judged in both directions: the terms of the incoming pod, and the terms of the
pods that run already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from claimctl.label_selectors import selects
from claimctl_reschedule.plan.world import World, WorldNode, WorldPod, required_anti_affinity
from claimctl_reschedule.shapes.scheduling import PodAffinityTerm

Domains = dict[str, set[str]]
"""Values of node labels, by topology key."""


@dataclass(slots=True)
class PodAffinityCheck:
    """What was found of the other pods, for one incoming pod."""

    avoided: Domains
    wanted: list[tuple[str, set[str]]]
    """The topology key and the domains of each required affinity term."""
    first: bool
    """No pod matches the terms yet, and the pod itself does: it may be the first."""

    def problem(self, node: WorldNode) -> str:
        """Why the pod cannot be on the node; '' if it can."""
        labels = node.labels
        for key, values in self.avoided.items():
            if labels.get(key) in values:
                return "pod anti-affinity"
        for key, values in self.wanted:
            value = labels.get(key)
            if value is None or (value not in values and not self.first):
                return "pod affinity"
        return ""


def check_of(world: World, pod: WorldPod) -> PodAffinityCheck | None:
    """The check for an incoming pod; None if no term concerns it."""
    avoided: Domains = {}
    for anti_term in world.anti_terms(pod):
        _add(world, avoided, anti_term.term.topology_key, anti_term.per_node)
    affinity = pod.pod.spec.affinity
    for term in required_anti_affinity(affinity):
        namespaces = world.namespaces_of(term, pod.namespace)
        nodes = world.matching(namespaces, term.label_selector)
        _add(world, avoided, term.topology_key, nodes)
    terms = affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()
    if not avoided and not terms:
        return None
    if len(terms) == 1:
        namespaces = world.namespaces_of(terms[0], pod.namespace)
        matching = list(world.matching(namespaces, terms[0].label_selector))
    else:  # only pods that all terms mean count
        others = world.pods.values() if terms else ()
        matching = [o.node for o in others if all(_means(world, term, pod, o) for term in terms)]
    wanted = [(term.topology_key, _domains(world, term.topology_key, matching)) for term in terms]
    first = not matching and all(_means(world, term, pod, pod) for term in terms)
    return PodAffinityCheck(avoided, wanted, first)


def _means(world: World, term: PodAffinityTerm, pod: WorldPod, other: WorldPod) -> bool:
    namespaces = world.namespaces_of(term, pod.namespace)
    here = namespaces is None or other.namespace in namespaces
    return here and selects(term.label_selector, other.labels)


def _add(world: World, domains: Domains, key: str, nodes: Mapping[str, int]) -> None:
    if names := _domains(world, key, nodes):
        domains.setdefault(key, set()).update(names)


def _domains(world: World, key: str, nodes: Iterable[str]) -> set[str]:
    values = (world.nodes[name].labels.get(key) for name in nodes)
    return {value for value in values if value is not None}
