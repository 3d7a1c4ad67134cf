"""Rules about other pods: inter-pod affinity, and topology spread.

The rules are those of the plugins interpodaffinity and podtopologyspread of kube-scheduler.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kube_in_process.components.fit import selects, untolerated
from kube_in_process.components.objects import (
    controller_of,
    deleting,
    labels,
    matches,
    name,
    namespace,
    uid,
)
from kube_in_process.components.scheduler.rooms import Scene
from kube_in_process.objects import Object
from kube_in_process.runtime.views import Views

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NO_AFFINITY = "node(s) didn't match pod affinity rules"
NO_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
NO_OTHERS_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
NO_SPREAD = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{NO_SPREAD} (missing required label)"

Term = Mapping[str, Any]


def terms(pod: Object, kind: str, when: str) -> tuple[Term, ...]:
    """The terms of podAffinity or podAntiAffinity."""
    return tuple(((pod["spec"].get("affinity") or {}).get(kind) or {}).get(when) or ())


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The rules of a pod and of the pods that are there. ``spaces``: labels by namespace."""

    pod: Object
    scene: Scene
    spaces: Mapping[str, Mapping[str, str]]

    def reason_against(self, node: Object) -> str:
        """Why the rules refuse a node, or ''."""
        if not self._near(node):
            return NO_AFFINITY
        for term in terms(self.pod, "podAntiAffinity", REQUIRED):
            others = self._others(node, term["topologyKey"])
            if any(self.term_matches(term, self.pod, other) for other in others):
                return NO_ANTI_AFFINITY
        for other, its_node in self.scene.placed():
            for term in terms(other, "podAntiAffinity", REQUIRED):
                if _same(its_node, node, term["topologyKey"]) and self.term_matches(
                    term, other, self.pod
                ):
                    return NO_OTHERS_ANTI_AFFINITY
        return ""

    def _near(self, node: Object) -> bool:
        wanted = terms(self.pod, "podAffinity", REQUIRED)
        if any(term["topologyKey"] not in labels(node) for term in wanted):
            return False
        fitting = [
            its_node
            for other, its_node in self.scene.placed()
            if wanted and all(self.term_matches(term, self.pod, other) for term in wanted)
        ]
        if all(any(_same(its, node, term["topologyKey"]) for its in fitting) for term in wanted):
            return True
        # the first pod of a set that wants to be together
        return not fitting and all(self.term_matches(term, self.pod, self.pod) for term in wanted)

    def _others(self, node: Object, key: str) -> Iterator[Object]:
        for other, its_node in self.scene.placed():
            if _same(its_node, node, key):
                yield other

    def term_matches(self, term: Term, owner: Object, other: Object) -> bool:
        """Whether a term of ``owner`` selects the pod ``other``."""
        named, selector = term.get("namespaces") or (), term.get("namespaceSelector")
        space = namespace(other)
        if selector is None and not named:
            inside = space == namespace(owner)
        else:
            inside = space in named or matches(selector, self.spaces.get(space) or {})
        return inside and matches(term.get("labelSelector"), labels(other))

    def preference(self, node: Object) -> int:
        """The score before normalization: preferred terms, and those of the pods there."""
        total = 0
        for other, its_node in self.scene.placed():
            total += self._wish(self.pod, other, its_node, node)
            total += self._wish(other, self.pod, its_node, node)
            for term in terms(other, "podAffinity", REQUIRED):
                total += self._counts(term, other, self.pod, its_node, node)
        return total

    def _wish(self, owner: Object, other: Object, its_node: Object, node: Object) -> int:
        total = 0
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
            for term in terms(owner, kind, PREFERRED):
                count = self._counts(term["podAffinityTerm"], owner, other, its_node, node)
                total += sign * term["weight"] * count
        return total

    def _counts(
        self, term: Term, owner: Object, other: Object, its_node: Object, node: Object
    ) -> int:
        near = _same(its_node, node, term["topologyKey"])
        return int(near and self.term_matches(term, owner, other))


def _same(one: Object, other: Object, key: str) -> bool:
    value = labels(one).get(key)
    return value is not None and value == labels(other).get(key)


# Topology spread


@dataclass(frozen=True, slots=True)
class Constraint:
    """One topology spread constraint. ``selector`` is a metav1.LabelSelector."""

    key: str
    skew: int
    selector: Mapping[str, Any]
    least_domains: int = 1
    affinity: str = "Honor"
    taints: str = "Ignore"
    owner: str = ""
    """The UID of the controller whose pods the selector selects, if it is that of a controller."""

    @classmethod
    def given(cls, body: Mapping[str, Any], pod: Object) -> Constraint:
        selector = dict(body.get("labelSelector") or {})
        own = labels(pod)
        by_keys = {key: own[key] for key in body.get("matchLabelKeys") or () if key in own}
        if by_keys:
            selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **by_keys}
        return cls(
            body["topologyKey"],
            body["maxSkew"],
            selector,
            body.get("minDomains") or 1,
            body.get("nodeAffinityPolicy", "Honor"),
            body.get("nodeTaintsPolicy", "Ignore"),
        )

    def includes(self, pod: Object, node: Object) -> bool:
        """Whether the pods of a node count."""
        if self.key not in labels(node):
            return False
        if self.affinity == "Honor" and not selects(pod, node):
            return False
        taints = (node.get("spec") or {}).get("taints") or ()
        tolerations = pod["spec"].get("tolerations") or ()
        return self.taints == "Ignore" or untolerated(taints, tolerations) is None

    def counts(self, pod: Object, node: Object, scene: Scene) -> int:
        """The number of matching pods on a node."""
        if self.owner:
            return scene.room(node).owned[self.owner]
        return sum(
            1
            for asked in scene.room(node).pods.values()
            if namespace(asked.pod) == namespace(pod)
            and not deleting(asked.pod)
            and matches(self.selector, labels(asked.pod))
        )


def constraints(pod: Object, when: str) -> list[Constraint]:
    """The pod's own constraints with that ``whenUnsatisfiable``."""
    return [
        Constraint.given(constraint, pod)
        for constraint in pod["spec"].get("topologySpreadConstraints") or ()
        if constraint["whenUnsatisfiable"] == when
    ]


@dataclass(frozen=True, slots=True)
class Spread:
    """The hard constraints of a pod, with the pods of each domain counted once."""

    pod: Object
    rules: tuple[tuple[Constraint, Mapping[str, int]], ...]

    @classmethod
    def of(cls, pod: Object, scene: Scene) -> Spread:
        hard = constraints(pod, "DoNotSchedule")
        keys = [constraint.key for constraint in hard]
        rules = []
        for constraint in hard:
            domains: dict[str, int] = {}
            for node in scene.nodes:
                if all(key in labels(node) for key in keys) and constraint.includes(pod, node):
                    value = labels(node)[constraint.key]
                    domains[value] = domains.get(value, 0) + constraint.counts(pod, node, scene)
            rules.append((constraint, domains))
        return cls(pod, tuple(rules))

    def reason_against(self, node: Object) -> str:
        for rule, domains in self.rules:
            value = labels(node).get(rule.key)
            if value is None:
                return NO_LABEL
            least = min(domains.values(), default=0)
            if len(domains) < rule.least_domains:
                least = 0
            own = int(matches(rule.selector, labels(self.pod)))
            if domains.get(value, 0) + own - least > rule.skew:
                return NO_SPREAD
        return ""


def soft_constraints(pod: Object, views: Views) -> tuple[list[Constraint], bool]:
    """The soft constraints, and whether they are the scheduler's own defaults.

    Without constraints of its own, a pod of a Service, ReplicaSet or StatefulSet is spread over
    hosts and zones.
    """
    if pod["spec"].get("topologySpreadConstraints"):
        return constraints(pod, "ScheduleAnyway"), False
    selector, owner = _default_selector(pod, views)
    if not selector:
        return [], True
    both = ((HOSTNAME, 3), (ZONE, 5))
    return [Constraint(key, skew, selector, owner=owner) for key, skew in both], True


def _default_selector(pod: Object, views: Views) -> tuple[dict[str, Any], str]:
    """The selector, and the UID of the controller if only its own selector counts."""
    wanted: dict[str, str] = {}
    for service in views["services"].items():
        chosen = (service.get("spec") or {}).get("selector")
        inside = namespace(service) == namespace(pod)
        if chosen and inside and matches({"matchLabels": chosen}, labels(pod)):
            wanted |= chosen
    of_services = bool(wanted)
    expressions: list[Any] = []
    owner = controller_of(pod)
    plural = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}
    if owner is not None and owner["kind"] in plural:
        workload = views[plural[owner["kind"]]].get(namespace(pod), owner["name"])
        if workload is not None and uid(workload) == owner["uid"]:
            selector = workload["spec"].get("selector") or {}
            wanted |= selector.get("matchLabels") or {}
            expressions += selector.get("matchExpressions") or ()
    if not wanted and not expressions:
        return {}, ""
    alone = "" if of_services or owner is None else str(owner["uid"])
    return {"matchLabels": wanted, "matchExpressions": expressions}, alone


def spread_scores(
    pod: Object, feasible: Iterable[Object], scene: Scene, views: Views
) -> dict[str, int]:
    """By node: 0 to 100, more where fewer matching pods are; empty without soft constraints."""
    nodes = list(feasible)
    rules, defaults = soft_constraints(pod, views)
    if not rules or not nodes:
        return {}
    ignored = {
        name(node)
        for node in nodes
        if not defaults and any(rule.key not in labels(node) for rule in rules)
    }
    raw = {name(node): 0.0 for node in nodes if name(node) not in ignored}
    for rule in rules:
        counted = _by_domain(pod, rule, nodes, scene)
        size = len(raw) if rule.key == HOSTNAME else len(counted)
        for node in nodes:
            if name(node) in raw and rule.key in labels(node):
                count = counted.get(labels(node)[rule.key], 0)
                raw[name(node)] += count * math.log(size + 2) + rule.skew - 1
    rounded = {node_name: _rounded(value) for node_name, value in raw.items()}
    most, least = max(rounded.values(), default=0), min(rounded.values(), default=0)
    scores = {
        node_name: 100 if most == 0 else 100 * (most + least - value) // most
        for node_name, value in rounded.items()
    }
    return scores | dict.fromkeys(ignored, 0)


def _by_domain(pod: Object, rule: Constraint, nodes: list[Object], scene: Scene) -> dict[str, int]:
    """The matching pods of each domain that has a feasible node."""
    domains = {labels(node).get(rule.key, ""): 0 for node in nodes}
    places = nodes if rule.key == HOSTNAME else scene.nodes
    for node in places:
        value = labels(node).get(rule.key, "")
        usable = rule.key == HOSTNAME or rule.includes(pod, node)
        if value in domains and value and usable:
            domains[value] += rule.counts(pod, node, scene)
    return domains


def _rounded(value: float) -> int:
    """Half away from zero, as Go's math.Round."""
    return math.floor(value + 0.5)
