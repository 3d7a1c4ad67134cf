"""Preemption: which pods of lower priority have to go so that a pod fits.

The rules are those of kube-scheduler's plugin DefaultPreemption. It knows no devices: a node that
lacks them is no candidate. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kube_in_process.components.fit import summary
from kube_in_process.components.objects import (
    condition,
    deleting,
    labels,
    matches,
    name,
    namespace,
    uid,
)
from kube_in_process.components.rooms import Asked, priority
from kube_in_process.components.scheduler.filters import Filters, Refusal
from kube_in_process.objects import Object
from kube_in_process.runtime.views import Views

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
BY_SCHEDULER = "PreemptionByScheduler"
_NEVER = "not eligible due to preemptionPolicy=Never."
_WAITS = "not eligible due to a terminating pod on the nominated node."
_OFFSET = 1 << 31
"""Added to each priority, so that every victim makes a sum larger."""
_LATE = "9999"
"""The start time of a pod that has none: it counts as started now."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, the pods that have to go, and how many of them a budget protects."""

    node: str
    victims: tuple[Object, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class PreemptionOutcome:
    """``message`` says why nothing is preempted. ``keeps``: the pod keeps its nominated node."""

    candidate: Candidate | None = None
    message: str = ""
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Preemption:
    """The search for one pod that no node fits. ``refusals``: by node, why it was refused."""

    filters: Filters
    refusals: Mapping[str, Refusal]
    views: Views
    _protected: dict[str, list[Object]] = field(default_factory=dict)

    @property
    def asked(self) -> Asked:
        return self.filters.asked

    def run(self) -> PreemptionOutcome:
        why = self._not_eligible()
        if why:
            return PreemptionOutcome(message=why, keeps=True)
        candidates: list[Candidate] = []
        reasons: list[str] = []
        for node in self.filters.scene.nodes:
            refusal = self.refusals.get(name(node))
            if refusal is None or not refusal.resolvable:
                reasons.append(NOT_HELPFUL)
                continue
            candidate = self._on(node)
            if isinstance(candidate, Candidate):
                candidates.append(candidate)
            else:
                reasons += candidate
        if candidates:
            return PreemptionOutcome(min(candidates, key=_cost))
        total = len(self.filters.scene.nodes)
        return PreemptionOutcome(message=f"0/{total} nodes are available: {summary(reasons)}.")

    def _not_eligible(self) -> str:
        pod = self.asked.pod
        if pod["spec"].get("preemptionPolicy") == "Never":
            return _NEVER
        nominated = (pod.get("status") or {}).get("nominatedNodeName")
        if nominated and nominated in self.refusals and self.refusals[nominated].resolvable:
            for asked in self.filters.scene.room(nominated).pods.values():
                if asked.priority < self.asked.priority and _is_preempted(asked.pod):
                    return _WAITS
        return ""

    def _on(self, node: Object) -> Candidate | tuple[str, ...]:
        """The victims on a node, or the reasons why there are none."""
        there = self.filters.scene.room(node).pods.values()
        lower = [asked.pod for asked in there if asked.priority < self.asked.priority]
        if not lower:
            return (NO_VICTIMS,)
        gone = {uid(victim) for victim in lower}
        refusal = self._check(node, gone)
        if refusal is not None:
            return refusal.reasons
        lower.sort(key=_importance)
        violating = self._violating(lower)
        victims, violations = [], 0
        for pod in sorted(lower, key=lambda victim: uid(victim) not in violating):
            if self._check(node, gone - {uid(pod)}) is None:
                gone.discard(uid(pod))
            else:
                victims.append(pod)
                violations += uid(pod) in violating
        return Candidate(name(node), tuple(sorted(victims, key=_importance)), violations)

    def _check(self, node: Object, gone: set[str]) -> Refusal | None:
        scene = self.filters.scene.changed(name(node), without=gone)
        return self.filters.in_scene(scene).check(node)

    def _violating(self, pods: Sequence[Object]) -> set[str]:
        """The UIDs of the pods whose eviction a PodDisruptionBudget does not allow any more."""
        left: dict[str, int] = {}
        violating: set[str] = set()
        for pod in pods:
            for budget in self._budgets(namespace(pod)):
                status = budget.get("status") or {}
                covers = _covers(budget, pod)
                if not covers or name(pod) in (status.get("disruptedPods") or {}):
                    continue
                rest = left.get(uid(budget), status.get("disruptionsAllowed", 0)) - 1
                left[uid(budget)] = rest
                if rest < 0:
                    violating.add(uid(pod))
        return violating

    def _budgets(self, space: str) -> list[Object]:
        if space not in self._protected:
            every = self.views["poddisruptionbudgets"].items()
            self._protected[space] = [budget for budget in every if namespace(budget) == space]
        return self._protected[space]


def _covers(budget: Object, pod: Object) -> bool:
    """Here, other than in the eviction API, an empty selector selects no pod."""
    selector = budget["spec"].get("selector")
    return bool(selector) and matches(selector, labels(pod))


def _is_preempted(pod: Object) -> bool:
    target = condition(pod, "DisruptionTarget") or {}
    return deleting(pod) and target.get("reason") == BY_SCHEDULER


def _started(pod: Object) -> str:
    return (pod.get("status") or {}).get("startTime") or _LATE


def _importance(pod: Object) -> tuple[int, str]:
    """The more important pod first: of higher priority, then the one that runs longer."""
    return -priority(pod), _started(pod)


def _cost(candidate: Candidate) -> tuple[int, int, int, int, tuple[int, ...]]:
    """The node with the least cost is chosen: the first criterion that differs decides."""
    priorities = [priority(victim) for victim in candidate.victims]
    highest = max(priorities, default=-_OFFSET)
    earliest = min(
        (_started(victim) for victim in candidate.victims if priority(victim) == highest),
        default=_LATE,
    )
    return (
        candidate.violations,
        highest,
        sum(priority + _OFFSET for priority in priorities),
        len(priorities),
        tuple(-ord(letter) for letter in earliest),
    )
