"""The state of a workload that only the rule of its kind describes."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState, observe
from claimctl.reservation.kinds.judging import JudgedWorkload
from claimctl.reservation.kinds.rules import Rule


def unknown_state(rule: Rule, problem: str) -> WorkloadState:
    """The state of a workload of which nothing can be said; it holds what it holds."""
    return WorkloadState(
        WorkloadPhase.UNKNOWN, confirmed=True, by_pods=True, rule=rule, problem=problem
    )


def custom_state(
    rule: Rule,
    workload: JudgedWorkload | None,
    makers: frozenset[str],
    held_for: tuple[str, ...],
    *,
    confirmed: bool,
) -> WorkloadState:
    """The state of a workload of a kind that can be read.

    Args:
        workload: None if there is none under the name.
        makers: the UIDs of the direct controllers of the pods that are under it and name the claim.
        held_for: the UIDs for which the claim is held also before a pod names it: of the
            incarnation that holds it, and of the reservation, which may name itself.
        confirmed: whether a live read has shown the workload, or that it is gone.
    """
    if workload is None:
        phase = WorkloadPhase.ABSENT if confirmed else WorkloadPhase.UNSEEN
        return WorkloadState(phase, by_pods=True, rule=rule)
    return replace(
        observe(workload, ""),
        confirmed=confirmed,
        names_claim=bool(makers) or workload.metadata.uid in held_for,
        pod_owners=makers,
    )


def with_children(
    rule: Rule, state: WorkloadState, recorded: str, left: tuple[str, ...] | str | None
) -> WorkloadState:
    """The state of a workload that is over, with the objects that it has made.

    Args:
        left: what a live LIST has shown; its problem; None if it was not made.
    """
    root = state.uid or recorded
    if not (state.is_over and root and rule.children):
        return state
    if isinstance(left, str):
        return replace(state, phase=WorkloadPhase.UNKNOWN, problem=left)
    return replace(state, root=root, children=left)
