"""Judge by the history which references a DowngradePlan allows claimctl to replace by pods.

Two conditions must hold for a replaced reference:

- Before the write, the status of the plan named the reference as replaced, together with the
  resourceVersion of the claim that the write was based on.
- The reservation feature put the reference there: it is the object that the claim was created for
  (KEP-5194), or a PodGroup (KEP-5729).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kube_in_process.storage.store import Revision

from claimctl.wire.base import decode
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import TOMBSTONE_GROUP, DowngradePlan
from claimctl_witness.world import World, is_bound_consumer

Record = tuple[str, str, frozenset[str]]
"""The UID of the plan, the claim's resourceVersion, and the UIDs of the replaced references."""


@dataclass(slots=True)
class Expansions:
    """The records in the status of the plan.

    The records of a deleted plan stay. A write that was decided under a plan may arrive after the
    plan is deleted, even after an administrator has created the next plan. The resourceVersion in
    the record matches that write only. A record of the next plan replaces the older record of the
    same claim.
    """

    _records: dict[str, Record] = field(default_factory=dict)
    """Records by claim UID."""
    _groups: dict[str, frozenset[str]] = field(default_factory=dict)
    """By claim UID: the names of the PodGroups that the latest plan replaced."""
    _planned: bool = False

    def notice(self, revision: Revision) -> None:
        """Read one revision of a DowngradePlan; ignore other kinds."""
        if revision.plural != "downgradeplans":
            return
        self._planned = revision.type != "DELETED"
        if not self._planned:
            return
        plan = decode(revision.data, DowngradePlan)
        uid = plan.metadata.uid
        kept = {claim: record for claim, record in self._records.items() if record[0] != uid}
        for record in plan.status.claims:
            replaced = frozenset(reference.uid for reference in record.replaced_references)
            kept[record.uid] = (uid, record.resource_version, replaced)
            groups = filter(_is_pod_group, record.replaced_references)
            self._groups[record.uid] = frozenset(group.name for group in groups)
        self._records = kept

    def may_replace(self, revision: Revision, reference: Reference) -> bool:
        """Whether a downgrade allows this write to remove the reference from the claim."""
        before = _before(revision)
        if before is None or reference.uid not in self._recorded(before):
            return False
        return reference == before.spec.reserved_for or _is_pod_group(reference)

    def opened(self, claim: ResourceClaim, pod: Pod) -> bool:
        """Whether a plan replaced the entry of the pod's PodGroup, or is about to.

        A scheduler that saw that entry may bind the pod without listing it, so the plan lists it,
        also in a later write.
        """
        groups = self._groups.get(claim.metadata.uid, frozenset())
        if self._planned:
            groups |= {entry.name for entry in claim.status.reserved_for if _is_pod_group(entry)}
        return bool(pod.spec.group_name) and pod.spec.group_name in groups

    def unrecorded(self, revision: Revision, world: World) -> list[Reference]:
        """The removed workload references that a downgrade should have recorded and did not.

        This is judged only if any pod may use the claim and a consumer is listed. In that case,
        only a downgrade removes the last workload reference.
        """
        before = _before(revision)
        if before is None or revision.type == "DELETED":
            return []
        after = decode(revision.data, ResourceClaim)
        allocation = after.status.allocation
        if allocation is None or not allocation.reserved_for_any_pod:
            return []
        if any(map(_is_workload, after.status.reserved_for)) or not _in_use(revision, after, world):
            return []
        recorded = self._recorded(before)
        left = filter(_is_workload, before.status.reserved_for)
        return [reference for reference in left if reference.uid not in recorded]

    def _recorded(self, before: ResourceClaim) -> frozenset[str]:
        nothing: Record = ("", "", frozenset())
        _, version, replaced = self._records.get(before.metadata.uid, nothing)
        return replaced if version == before.metadata.resource_version else frozenset()


def _before(revision: Revision) -> ResourceClaim | None:
    return None if revision.previous is None else decode(revision.previous, ResourceClaim)


def _is_workload(reference: Reference) -> bool:
    is_pod = not reference.api_group and reference.resource == "pods"
    return not is_pod and reference.api_group != TOMBSTONE_GROUP


def _is_pod_group(reference: Reference) -> bool:
    return (reference.api_group, reference.resource) == ("scheduling.k8s.io", "podgroups")


def _in_use(revision: Revision, claim: ResourceClaim, world: World) -> bool:
    listed = {reference.uid for reference in claim.status.reserved_for}
    pods = world.pods_in(revision.namespace)
    return any(pod.metadata.uid in listed and is_bound_consumer(pod) for pod in pods)
