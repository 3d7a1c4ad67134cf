"""What a DowngradePlan allows, by the history alone: references that were put on record before.

A reference may give way to pods when a plan's status named it as replaced, under the very version
of the claim that the write then followed on, and when the reservation feature put it there: what
the claim was made for (KEP-5194), or a PodGroup (KEP-5729).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from claimctl.audit.world import World, is_bound_consumer
from claimctl.embedded.storage.store import Revision
from claimctl.wire.base import decode
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import TOMBSTONE_GROUP, DowngradePlan

Record = tuple[str, str, frozenset[str]]
"""The UID of the plan, the version of the claim, and the UIDs of what is replaced in it."""


@dataclass(slots=True)
class Expansions:
    """What stands in the plan's status; after the plan's end, what stood there last.

    A write that was decided under the plan may arrive after it, also when an administrator has made
    the next plan by then. The version sees to it that it is that write alone. The next plan's own
    word about a claim takes the place of what the one before said about it.
    """

    _records: dict[str, Record] = field(default_factory=dict)
    """By UID of the claim."""

    def notice(self, revision: Revision) -> None:
        """Take in one revision of a DowngradePlan; others are passed over."""
        if revision.plural != "downgradeplans" or revision.type == "DELETED":
            return
        plan = decode(revision.data, DowngradePlan)
        uid = plan.metadata.uid
        kept = {claim: record for claim, record in self._records.items() if record[0] != uid}
        for record in plan.status.claims:
            replaced = frozenset(reference.uid for reference in record.replaced_references)
            kept[record.uid] = (uid, record.resource_version, replaced)
        self._records = kept

    def may_replace(self, revision: Revision, reference: Reference) -> bool:
        """Whether the write to a claim could take this out for a downgrade."""
        before = _before(revision)
        if before is None or reference.uid not in self._recorded(before):
            return False
        created_for = before.spec.reserved_for
        group = (reference.api_group, reference.resource)
        return reference == created_for or group == ("scheduling.k8s.io", "podgroups")

    def unrecorded(self, revision: Revision, world: World) -> list[Reference]:
        """Workloads that gave way to running pods and were not on record.

        Only where any pod may use the claim: there, with a consumer listed, nothing but a downgrade
        takes out the last workload.
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


def _in_use(revision: Revision, claim: ResourceClaim, world: World) -> bool:
    listed = {reference.uid for reference in claim.status.reserved_for}
    pods = world.pods_in(revision.namespace)
    return any(pod.metadata.uid in listed and is_bound_consumer(pod) for pod in pods)
