"""PodDisruptionBudgets in the plan: what the eviction subresource would allow.

The rules are those of the API server (recorded on real servers). A plan spends what a budget
allows now and does not count on pods becoming ready again during the run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from claimctl.label_selectors import selects
from claimctl.reservation.facts.pods import TERMINAL_PHASES
from claimctl.wire.unreadable import Unreadable
from claimctl_reschedule.plan.facts import is_ready
from claimctl_reschedule.plan.pod_terms import Corner, corners, corners_of
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.world import WorldPod
from claimctl_reschedule.shapes.scheduling import PodDisruptionBudget

ALWAYS_ALLOW = "AlwaysAllow"
_KIND = "PodDisruptionBudget"


class Budgets:
    """The budgets of the cluster. If one cannot be read, no pod of its namespace is moved."""

    def __init__(
        self, budgets: Iterable[PodDisruptionBudget], unreadable: Iterable[Unreadable] = ()
    ) -> None:
        self._by_corner: dict[Corner, list[PodDisruptionBudget]] = defaultdict(list)
        self._spent: Counter[tuple[str, str]] = Counter()
        self._unreadable = [problem for problem in unreadable if problem.resource.kind == _KIND]
        for budget in sorted(budgets, key=lambda budget: budget.metadata.key):
            for corner in corners(frozenset({budget.metadata.namespace}), budget.spec.selector):
                self._by_corner[corner].append(budget)

    def of(self, pod: WorldPod) -> list[PodDisruptionBudget]:
        """The budgets that select the pod."""
        return [
            budget
            for corner in corners_of(pod.namespace, pod.labels)
            for budget in self._by_corner.get(corner, ())
            if selects(budget.spec.selector, pod.labels)
        ]

    def obstacle(self, pods: Sequence[WorldPod]) -> Obstacle | None:
        """Why the evictions of all these pods together would be refused."""
        wanted: Counter[tuple[str, str]] = Counter()
        for pod in pods:
            if any(problem.may_be_in(pod.namespace) for problem in self._unreadable):
                return Obstacle(Ground.UNREADABLE, f"a {_KIND} of the namespace cannot be read")
            budgets = self.of(pod)
            if len(budgets) > 1 and _counts(pod):
                names = ", ".join(sorted(budget.metadata.name for budget in budgets))
                return Obstacle(Ground.TWO_BUDGETS, f"{_KIND}s {names} select the pod")
            for budget in budgets:
                if problem := self._problem(budget, pod, wanted):
                    return problem
        return None

    def _problem(
        self, budget: PodDisruptionBudget, pod: WorldPod, wanted: Counter[tuple[str, str]]
    ) -> Obstacle | None:
        if not _charges(budget, pod):
            return None
        name = budget.metadata.key
        if budget.status.observed_generation < budget.metadata.generation:
            detail = f"{_KIND} {name[1]} has changed and is not counted yet"
            return Obstacle(Ground.BUDGET_NOT_OBSERVED, detail)
        wanted[name] += 1
        allowed = budget.status.disruptions_allowed
        if self._spent[name] + wanted[name] > allowed:
            detail = f"{_KIND} {name[1]} allows {allowed}, {self._spent[name]} of it planned"
            return Obstacle(Ground.BUDGET_SPENT, detail)
        return None

    def spend(self, pod: WorldPod) -> None:
        """Count the eviction of the pod."""
        for budget in self.of(pod):
            if _charges(budget, pod):
                self._spent[budget.metadata.key] += 1


def _counts(pod: WorldPod) -> bool:
    """Whether the API server asks budgets about the pod at all."""
    phase = pod.pod.status.phase
    return not (phase in TERMINAL_PHASES or phase == "Pending" or pod.pod.metadata.deleting)


def _charges(budget: PodDisruptionBudget, pod: WorldPod) -> bool:
    """Whether an eviction of the pod counts against the budget."""
    if not _counts(pod):
        return False
    if is_ready(pod.pod):
        return True
    if budget.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW:
        return False
    status = budget.status
    return not status.current_healthy >= status.desired_healthy > 0
