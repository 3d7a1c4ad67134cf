"""What is said of sticky claims: whose ordinal they are, and what becomes of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from claimctl.reservation.facts.ordinals import (
    asked_names,
    owner_ref,
    sticky_entries,
    sticky_of,
    waits_for_policy,
)
from claimctl.reservation.facts.reasons import ConditionType
from claimctl.reservation.facts.snapshot import Held
from claimctl.wire.meta import find_condition
from claimctl.wire.ordinals import ordinal_word
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import DELETE, ClaimReservation, WorkloadRef
from claimctl.wire.resources import WORKLOADS
from claimctl.wire.workloads import CustomWorkload, Workload, template_of

WITHOUT_POLICY = (
    "the pod asks for sticky claims, and has generated ones, which go with it: the policy was not "
    "in force when the pod was made"
)
WITHOUT_LABEL = (
    "the pod asks for sticky claims, and has generated ones: when the pod was made, no "
    "WorkloadKind with spec.ordinals described its "
)
WITHOUT_ORDINAL = "the pod asks for sticky claims, and its workload has no ordinals: it is a "
TO_SEE = "`claimctl install --component workloads`"
TO_MAKE = "claimctl makes the claim as soon as it can. See what keeps it from that: claimctl doctor"
TO_PUT_IN_FORCE = (
    "Put the policy in force (claimctl install --component sticky-claims); the next pod of the "
    "ordinal gets them."
)
WITH_ORDINALS = (
    "Use a StatefulSet or an Indexed Job, or remove claimctl.io/sticky from the pod template."
)


def fate(held: Held) -> str:
    """Whose the claim of a ClaimReservation is, and what becomes of it; '' if it is not sticky."""
    spec, state = held.reservation.spec, held.workload
    if spec.sticky is None:
        return ""
    whose = f"the claim of ordinal {spec.sticky.whose}"
    if state.claim_over:
        another = state.exists and not state.names_claim
        why = "the pod template asks for another claim now" if another else "no pod will need it"
        return f"{whose}; {why}, so it is deleted when no pod names it any more"
    kept, deleted = "kept like that of an idle workload", "deleted"
    scaled = deleted if spec.sticky.when_scaled == DELETE else kept
    gone = deleted if spec.sticky.when_deleted == DELETE else kept
    return f"{whose}; scaled away, it is {scaled}; without the workload, it is {gone}"


def outdated(
    workload: Workload, own: Iterable[ClaimReservation], pods: Iterable[Pod]
) -> tuple[int, ...]:
    """The ordinals whose pods have a claim which the pod template does not ask for any more;
    none for a workload whose pod template is not read.

    Args:
        own: the workload's ClaimReservations.
        pods: the workload's.
    """
    named = {name for pod in pods for name in sticky_names(pod)}
    ordinals = set[int]()
    for made in own if not isinstance(workload, CustomWorkload) else ():
        sticky = sticky_of(made.spec)
        if sticky is None:
            continue
        names = asked_names(template_of(workload), made.spec.workload_ref, sticky.whose)
        if made.spec.resource_claim_name in named - names:
            ordinals.add(sticky.ordinal)
    return tuple(sorted(ordinals))


def not_in_force(pod: Pod) -> str:
    """Why a pod that asks for sticky claims has generated ones; '' if it has none, or does not
    ask."""
    owner = pod.metadata.controller()
    if not waits_for_policy(pod):
        return ""
    ref = owner_ref(owner) if owner is not None else WorkloadRef()
    if ordinal_word(ref.api_group, ref.kind):
        by_rule = (ref.api_group, ref.kind) not in WORKLOADS
        return f"{WITHOUT_LABEL}{ref.kind}" if by_rule else WITHOUT_POLICY
    return f"{WITHOUT_ORDINAL}{ref.kind}" if ref.kind else ""


def unmade(pod: Pod, claim: str, reservations: Iterable[ClaimReservation], controller: str) -> str:
    """Why the sticky claim that the pod names is not there; '' if it is not sticky.

    Args:
        reservations: those of the claim.
        controller: what the controller's Lease shows.
    """
    known = tuple(reservations)
    for entry in sticky_entries(pod):
        if entry.claim != claim:
            continue
        text = f"claimctl has not made claim {claim} of ordinal {entry.ordinal}"
        for made in known:
            ready = find_condition(made.status.conditions, ConditionType.READY)
            if ready is not None and ready.status == "False":
                return f"{text} from template {entry.template} ({ready.reason}): {ready.message}"
        text = f"{text} from template {entry.template} yet"
        if entry.owner is None and not known:
            # the pod does not name the UID of its workload
            ref = entry.workload
            text += f": it has to see {ref.kind} {ref.name}, which {TO_SEE} lets it read"
        return f"{text}; {controller}"
    return ""


def sticky_names(pod: Pod) -> set[str]:
    """The names of the sticky claims that the pod names."""
    return {entry.claim for entry in sticky_entries(pod)}
