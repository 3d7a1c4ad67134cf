"""Bugs that the schedules must find, each planted by ``labs.planting``."""

from __future__ import annotations

from labs.planting import Mutant

JUDGE = "claimctl.reservation.kinds.rules"
BUGS = (
    Mutant(
        "take an expression that fails for true",
        JUDGE,
        "_answer",
        'problems.append(f"{field} {error}"); return None',
        "return True",
    ),
    Mutant("believe a status that is behind", JUDGE, "_answer", "reads_status(source)", "False"),
    Mutant(
        "take what a rule does not say for idle",
        "claimctl.reservation.facts.workloads",
        "observe",
        "WorkloadPhase.UNKNOWN",
        "WorkloadPhase.IDLE",
    ),
    Mutant(
        "take a kind that is not served for one without objects",
        "claimctl.controller.live_reads",
        "Investigator._confirm_workload",
        "await self._as_served(resource, snapshot, reference) if custom else None",
        "None",
    ),
    Mutant(
        "believe a cache that no watch keeps fresh",
        "claimctl.controller.caches.kinds",
        "KindCache.problem",
        "isinstance(informer.trouble, Forbidden | NotFound)",
        "False",
    ),
    Mutant(
        "forget the children of a workload that is over",
        "claimctl.reservation.facts.workloads",
        "with_children",
        "state.is_over and root and rule.children",
        "False",
    ),
    Mutant(
        "take children that cannot be listed for none",
        "claimctl.reservation.facts.workloads",
        "with_children",
        "return replace(state, phase=WorkloadPhase.UNKNOWN, problem=left)",
        "return replace(state, root=root, children=())",
    ),
    Mutant(
        "take a pod that is being deleted for done",
        "claimctl.reservation.facts.pods",
        "is_done",
        "pod.metadata.deleting and not is_bound(pod)",
        "pod.metadata.deleting",
    ),
)
