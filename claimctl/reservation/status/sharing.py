"""Whether the pods of a workload share the claim through a PodGroup, and whether each component of
the cluster takes part. Kubelets show it by their versions, and all of them by the state of pods."""

from __future__ import annotations

from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT, is_pod
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.text import listed
from claimctl.wire.placement import BLOCKING_EFFECTS, selects, taints_of
from claimctl.wire.podgroups import MAX_CLAIMS
from claimctl.wire.pods import Pod
from claimctl.wire.releases import knows_pod_groups

START_SECONDS = 30.0
"""If a bound pod has not started after so many seconds, the kubelet counts as refusing it."""

_LISTED = f"its pods are listed one by one, at most {LIMIT - 1}"


def why_one_by_one(snapshot: Snapshot, held: Held) -> tuple[Reason, str] | None:
    """Why the workload's pods do not share the claim through a PodGroup, and what to do."""
    workload, ref = held.workload, held.reservation.spec.workload_ref
    if not workload.exists or workload.ended or not workload.names_claim:
        return None
    name = workload.pod_group
    if workload.fixed_template:
        # between pods, the status knows the group of the pods
        name = name or held.reservation.status.pod_group_name
        if not name:
            why = Reason.POD_TEMPLATE_IMMUTABLE if workload.injects else Reason.NO_SCHEDULING_GROUP
            field = f"spec.schedulingGroup.podGroupName: {ref.name}"
            return why, f"{_LISTED}; to share: recreate the {ref.kind} with {field} in its template"
    if not name:
        add = f"add spec.schedulingGroup.podGroupName: {ref.name} to the pod template"
        return Reason.NO_SCHEDULING_GROUP, f"{_LISTED}; to share: {add}"
    group = next((g for g in snapshot.groups if g.metadata.name == name), None)
    if group is None:
        return Reason.POD_GROUP_PENDING, f"PodGroup {name} does not exist yet; pods wait for it"
    if name in snapshot.sharing_groups:
        return None
    if len(group.spec.resource_claims) >= MAX_CLAIMS:
        text = f"PodGroup {name} has {MAX_CLAIMS} claims already, which is the limit"
        return Reason.TOO_MANY_CLAIMS_FOR_POD_GROUP, f"{text}; {_LISTED}"
    text = f"PodGroup {name} does not share this claim, and its claims are immutable"
    advice = "name another group in the pod template"
    return Reason.CLAIM_NOT_IN_POD_GROUP, f"{text}: {advice}; {_LISTED}"


def disagreement(snapshot: Snapshot) -> tuple[Reason, str] | None:
    """Which component treats the claim's PodGroup differently from the API server, or None."""
    names = snapshot.sharing_groups
    if not names or not snapshot.dialect.groups:
        return None
    # 1. The scheduler or KCM lists pods of the group one by one. An upgrade lists them, too.
    grouped = snapshot.consumers.groups
    pods = {entry.uid for entry in snapshot.references if is_pod(entry)}
    pods = {uid for uid in pods if grouped.get(uid) in names} - snapshot.written_uids
    if alone := [pod.metadata.name for pod in snapshot.pods if pod.metadata.uid in pods]:
        text = f"pods of the PodGroup are listed one by one, first {min(alone)}"
        advice = "DRAWorkloadResourceClaims seems to be off in the scheduler or in KCM"
        return Reason.SCHEDULER_IGNORES_GROUPS, f"{text}: {advice}"
    # 2. Kubelets do not start pods of the group. Another controller process may have reported it.
    waiting = _unstarted_pods(snapshot, names)
    if late := [pod for pod, left in waiting if left <= 0]:
        nodes = listed(sorted({pod.spec.node_name for pod in late}))
        text = f"pods are bound and do not start on {nodes}: see their events"
        advice = "FailedPrepareDynamicResources; the kubelets there seem to know no PodGroups"
        return Reason.KUBELETS_REFUSE, f"{text} {advice}"
    for held in snapshot.reservations if waiting else ():
        for condition in held.reservation.status.conditions:
            if condition.reason == Reason.KUBELETS_REFUSE:
                return Reason.KUBELETS_REFUSE, condition.message
    # 3. A node on which a pod with the claim could run is too old. Before the claim is allocated,
    # these are all schedulable nodes.
    allocation = snapshot.claim.status.allocation if snapshot.claim else None
    selector, old = allocation.node_selector if allocation else None, []
    for name in sorted(snapshot.nodes):
        node = snapshot.nodes[name]
        # cordoned, not ready or unreachable
        blocking = (taint for taint in taints_of(node) if taint.effect in BLOCKING_EFFECTS)
        closed = any(taint.key.startswith("node.kubernetes.io/") for taint in blocking)
        if selects(selector, node) and not closed and not knows_pod_groups(node):
            old.append(name)
    if not old:
        return None
    text = f"kubelets older than 1.36 refuse pods of PodGroups: {listed(old)}"
    return Reason.OLD_KUBELETS, f"{text}; keep the pods away from there"


def look_again(snapshot: Snapshot) -> float | None:
    """Seconds until a bound pod that has not started counts as refused, or None."""
    waiting = _unstarted_pods(snapshot, snapshot.sharing_groups)
    return min((left for _, left in waiting if left > 0), default=None)


def _unstarted_pods(snapshot: Snapshot, names: frozenset[str]) -> list[tuple[Pod, float]]:
    """The bound pods of the groups that have not started, with the seconds until each counts as
    refused, since this process first saw it bound."""
    pods, ages = snapshot.consumers, snapshot.memory.unstarted_age
    return [
        (pod, START_SECONDS - ages.get(uid, 0.0))
        for uid, pod in pods.bound.items()
        if pods.groups.get(uid) in names and pod.status.phase == "Pending"
    ]
