"""The PodGroups of a claim: which belong to its workloads, and which share it.

From Kubernetes 1.36, the resource claim controller of kube-controller-manager (KCM) treats the
pods of a group like this:

- If a bound pod is not listed, nor its group by name, KCM lists the group, even for a finished pod.
- KCM removes a group from a list only if the group's object is gone.
- For a pod whose group does not exist, KCM writes nothing.

So finished pods need no tombstones while their group is listed. They need tombstones at the fence,
which removes the group.
"""

from __future__ import annotations

from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT, is_pod_group
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.wire.claims import Reference
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.reservations import MANAGED_LABEL

MAX_CLAIMS = 4
"""The most claims that a PodGroup may have."""


def made_by_claimctl(group: PodGroup) -> bool:
    return (group.metadata.labels or {}).get(MANAGED_LABEL) == "claimctl"


def group_names(snapshot: Snapshot) -> frozenset[str]:
    """The names of the PodGroups of the claim's workloads.

    A pod template or a pod names the group, a status records it, or claimctl made it for a
    workload.
    """
    names, workloads = set(), set()
    for held in snapshot.reservations:
        names |= {held.workload.pod_group, held.reservation.status.pod_group_name}
        ref = held.reservation.spec.workload_ref
        workloads.add((ref.kind, ref.name))
    for group in filter(made_by_claimctl, snapshot.groups):
        owners = {(owner.kind, owner.name) for owner in group.metadata.owner_references}
        if owners & workloads:
            names.add(group.metadata.name)
    return frozenset(filter(None, names))


def own_groups(snapshot: Snapshot) -> frozenset[str]:
    """UIDs of the listed groups that belong to the claim's workloads, or that claimctl made.

    A group that claimctl made may outlive its reservation, because its workload goes on making pods
    that name the group.
    """
    names = group_names(snapshot)
    made = {group.metadata.uid for group in filter(made_by_claimctl, snapshot.groups)}
    return frozenset(
        reference.uid
        for reference in snapshot.no_pods
        if is_pod_group(reference) and (reference.name in names or reference.uid in made)
    )


def gone_groups(snapshot: Snapshot) -> tuple[Reference, ...]:
    """Listed groups of the claim's workloads whose objects are gone; KCM should remove them.

    In a cluster that serves no PodGroups, the result is empty.
    """
    if not snapshot.dialect.groups or not snapshot.group_listed:
        return ()
    known = {group.metadata.uid for group in snapshot.groups}
    names = group_names(snapshot)
    return tuple(
        entry
        for entry in snapshot.no_pods
        if is_pod_group(entry) and entry.name in names and entry.uid not in known
    )


_LISTED = f"its pods are listed one by one, at most {LIMIT - 1}"


def why_one_by_one(snapshot: Snapshot, held: Held) -> tuple[Reason, str] | None:
    """Why the workload's pods do not share the claim through a PodGroup, and what to do."""
    workload, ref = held.workload, held.reservation.spec.workload_ref
    if not workload.exists or workload.ended or not workload.names_claim:
        return None
    name = workload.pod_group
    if ref.kind == "Job":
        # the template never changes; between pods, the status knows the group of the pods
        name = name or held.reservation.status.pod_group_name
        if not name:
            why = Reason.POD_TEMPLATE_IMMUTABLE if workload.injects else Reason.NO_SCHEDULING_GROUP
            field = f"spec.schedulingGroup.podGroupName: {ref.name}"
            return why, f"{_LISTED}; to share: recreate the Job with {field} in its template"
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
