"""Detect version skew about PodGroups, by the kubelets' versions and by the state of pods."""

from __future__ import annotations

from collections.abc import Iterable

from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.membership import shares
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_pod
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.facts.workloads import group_of
from claimctl.text import listed
from claimctl.wire.nodes import Node
from claimctl.wire.placement import BLOCKING_EFFECTS, selects, taints_of
from claimctl.wire.pods import Pod
from claimctl.wire.releases import knows_pod_groups

START_SECONDS = 30.0
"""If a bound pod has not started after so many seconds, the kubelet counts as refusing it."""

Report = tuple[Reason, str]


def disagreement(snapshot: Snapshot, consumers: Consumers) -> Report | None:
    """Which component treats the claim's PodGroup differently from the API server, or None."""
    names = _sharing(snapshot)
    if not names:
        return None
    return (
        _listed_all_the_same(snapshot, names)
        or _not_started(snapshot, _members(consumers, names))
        or _old_kubelets(_usable_nodes(snapshot))
    )


def look_again(snapshot: Snapshot, consumers: Consumers) -> float | None:
    """Seconds until a bound pod that has not started counts as refused, or None."""
    waits = [_left(snapshot, pod) for pod in _members(consumers, _sharing(snapshot))]
    return min((left for left in waits if left > 0), default=None)


def _sharing(snapshot: Snapshot) -> frozenset[str]:
    if not DIALECTS[snapshot.rules.dialect].groups:
        return frozenset()
    groups = (group for group in snapshot.groups if shares(group, snapshot.name))
    return frozenset(group.metadata.name for group in groups)


def _members(consumers: Consumers, names: frozenset[str]) -> list[Pod]:
    """The bound pods of the groups that have not started."""
    return [
        pod
        for pod in consumers.bound.values()
        if group_of(pod.spec) in names and pod.status.phase == "Pending"
    ]


def _listed_all_the_same(snapshot: Snapshot, names: frozenset[str]) -> Report | None:
    listed = {each.uid for each in snapshot.references if is_pod(each)}
    found = [
        pod.metadata.name
        for pod in snapshot.pods
        if pod.metadata.uid in listed and group_of(pod.spec) in names
    ]
    if not found:
        return None
    text = f"pods of the PodGroup are listed one by one, first {min(found)}"
    return (
        Reason.SCHEDULER_IGNORES_GROUPS,
        f"{text}: DRAWorkloadResourceClaims seems to be off in the scheduler or in KCM",
    )


def _not_started(snapshot: Snapshot, members: Iterable[Pod]) -> Report | None:
    waiting = list(members)
    late = [pod for pod in waiting if _left(snapshot, pod) <= 0]
    if not late:
        return _reported_before(snapshot) if waiting else None
    nodes = sorted({pod.spec.node_name for pod in late})
    text = f"pods are bound and do not start on {listed(nodes)}"
    return (
        Reason.KUBELETS_REFUSE,
        f"{text}: see their events FailedPrepareDynamicResources; the kubelets there seem to know "
        "no PodGroups",
    )


def _reported_before(snapshot: Snapshot) -> Report | None:
    """The report about refused pods in a present status, by any controller process."""
    for held in snapshot.reservations:
        for each in held.reservation.status.conditions:
            if each.reason == Reason.KUBELETS_REFUSE:
                return Reason.KUBELETS_REFUSE, each.message
    return None


def _left(snapshot: Snapshot, pod: Pod) -> float:
    """Seconds until the pod counts as refused, since this process first saw it bound."""
    return START_SECONDS - snapshot.memory.unstarted_age.get(pod.metadata.uid, 0.0)


def _usable_nodes(snapshot: Snapshot) -> tuple[Node, ...]:
    """The nodes on which a pod with the claim could run, sorted by name.

    Before the claim is allocated, these are all schedulable nodes.
    """
    allocation = snapshot.claim.status.allocation if snapshot.claim else None
    selector = allocation.node_selector if allocation else None
    found = (snapshot.nodes[name] for name in sorted(snapshot.nodes))
    return tuple(node for node in found if selects(selector, node) and not _is_closed(node))


def _is_closed(node: Node) -> bool:
    """Whether the node is cordoned, not ready or unreachable."""
    taints = (each for each in taints_of(node) if each.effect in BLOCKING_EFFECTS)
    return any(each.key.startswith("node.kubernetes.io/") for each in taints)


def _old_kubelets(nodes: Iterable[Node]) -> Report | None:
    old = sorted(node.metadata.name for node in nodes if not knows_pod_groups(node))
    if not old:
        return None
    text = f"kubelets older than 1.36 refuse pods of PodGroups: {listed(old)}"
    return Reason.OLD_KUBELETS, f"{text}; keep the pods away from there"
