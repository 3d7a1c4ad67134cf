"""The known troubles of PodGroups, as ``claimctl explain pod/NAME`` names them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from claimctl.wire.pods import Pod

_RACE = "got allocated elsewhere in the meantime"
_BLOCKED = "is in the process of being allocated"


def waiting_for_group(pod: Pod, notes: Collection[str], *, gone: bool) -> Iterator[tuple[str, str]]:
    """Why a pod of a PodGroup has no node: (reason, message).

    Args:
        notes: what the scheduler says about the pod.
        gone: whether the pod's PodGroup does not exist.
    """
    name = pod.spec.group_name
    if gone:
        yield "PodGroupMissing", f"PodGroup {name} does not exist, and the scheduler waits for it"
    grouped = bool(name) or pod.spec.workload_ref is not None
    if grouped and any(_RACE in note for note in notes):
        text = "another pod of the group had the shared claim allocated first, which the scheduler"
        yield "SharedClaimRace", f"{text} takes for a conflict (kubernetes/kubernetes#140053)"
    if grouped and any(_BLOCKED in note for note in notes):
        text = "pods of a gang keep each other from the claim that they share, before Kubernetes"
        yield "GangSharesClaim", f"{text} 1.36 for ever (kubernetes/kubernetes#137617)"


def taken_away(pod: Pod, *, gone: bool, listed: bool) -> Iterator[tuple[str, str]]:
    """Whether a pod with a node has lost its PodGroup: (reason, message).

    Args:
        gone: whether the pod's PodGroup does not exist.
        listed: whether the lists of the pod's claims have the pod itself.
    """
    if gone and not listed:
        text = f"PodGroup {pod.spec.group_name} is gone before its pods have ended: somebody has"
        why = (
            "removed its finalizer podgroup-protection, and the kubelet refuses to start such pods"
        )
        yield "PodGroupTakenAway", f"{text} {why}"
