"""Judge by the history which references claimctl may remove from a claim.

claimctl may remove its own references, and references to objects that are gone or done. The entry
of a pod is claimctl's own if claimctl listed the pod ahead, until the pod runs. Another
reference is claimctl's own if claimctl wrote it, if claimctl created the claim for its object, or
if a reservation of the claim names its object. A DowngradePlan also allows references that the
feature wrote (see ``expansions``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from kube_in_process.storage.store import Revision

from claimctl.wire.base import decode
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import TOMBSTONE_GROUP
from claimctl_witness.expansions import Expansions
from claimctl_witness.world import TERMINAL, Key, World, claims_of, left_behind, runs

WORKLOAD_GROUPS = ("apps", "batch")


@dataclass(slots=True)
class Removals:
    """Records which references claimctl wrote, and finds removals that claimctl may not do.

    Args:
        users: the user names that claimctl writes under.
    """

    users: Collection[str]
    _own: defaultdict[Key, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    _listed: defaultdict[Key, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    """UIDs of the pods whose present entry claimctl wrote."""
    _taken_out: defaultdict[Key, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    """UIDs of the pods whose entry was removed and not written again."""
    _groups: dict[str, bool] = field(default_factory=dict)
    """By UID of each existing PodGroup: whether claimctl created it."""
    _group_specs: dict[Key, PodGroup] = field(default_factory=dict)
    """The last PodGroup of each name."""
    _gone: dict[str, None] = field(default_factory=dict)
    """UIDs of deleted objects, except pods."""
    expansions: Expansions = field(default_factory=Expansions)

    def notice(self, revision: Revision) -> None:
        """Read one revision of a claim, or of an object that a claim can be reserved for."""
        if revision.type == "DELETED" and revision.plural != "pods":
            self._gone[decode(revision.data, ObjectHeader).metadata.uid] = None
        self.expansions.notice(revision)
        if revision.plural == "resourceclaims" and revision.group == "resource.k8s.io":
            self._notice_pods(revision)
        if revision.plural == "podgroups":
            self._notice_group(revision)
        elif revision.plural == "resourceclaims" and revision.actor in self.users:
            key = (revision.namespace, revision.name)
            claim = decode(revision.data, ResourceClaim)
            before = _references(revision.previous)
            self._own[key] |= dict.fromkeys(_references(revision.data) - before.keys())
            if revision.type == "ADDED" and claim.spec.reserved_for is not None:
                self._own[key][claim.spec.reserved_for.uid] = None

    def _notice_pods(self, revision: Revision) -> None:
        """Note who wrote the entries of pods. Removals are noted when they have been judged."""
        key = (revision.namespace, revision.name)
        before, after = _pods(revision.previous), _pods(revision.data)
        if revision.type == "DELETED":
            self._listed.pop(key, None)
            self._taken_out.pop(key, None)
        elif revision.actor in self.users:
            self._listed[key] |= dict.fromkeys(after.keys() - before.keys())

    def noticed(self, revision: Revision) -> None:
        """Note which entries of pods this revision removed, after it has been judged."""
        if revision.type == "DELETED":
            return
        key = (revision.namespace, revision.name)
        before, after = _pods(revision.previous), _pods(revision.data)
        for uid in before.keys() - _references(revision.data).keys():
            self._listed[key].pop(uid, None)
            self._taken_out[key][uid] = None
        for uid in after:
            self._taken_out[key].pop(uid, None)

    def listed_again(self, revision: Revision, world: World) -> list[Reference]:
        """The pending pods that this write lists although their entry was removed before.

        A downgrade does so if it replaces another reference by the pods that use the claim.
        """
        key = (revision.namespace, revision.name)
        added = self._added_ahead(revision, world)
        return [each for each in added if each.uid in self._taken_out[key]]

    def listed_without_hold(self, revision: Revision, world: World) -> list[Reference]:
        """The pending pods that this write lists although no workload is listed.

        Devices that are allocated for any pod are an exception: a scheduler may bind a pod to them
        without listing it, so a downgrade lists it, if need be after the workload was removed.
        """
        claim = decode(revision.data, ResourceClaim)
        allocation = claim.status.allocation
        held = _lists_workload(claim, world)
        for_any_pod = allocation is not None and allocation.reserved_for_any_pod
        return [] if held or for_any_pod else self._added_ahead(revision, world)

    def listed_unfit(self, revision: Revision, world: World) -> list[Reference]:
        """The pending pods that this write lists although a scheduler would not list them now.

        Such a pod does not use the claim, has a scheduling gate, or has a PodGroup with the claim,
        a gang or an unknown one. None of this can come later, so it was so when claimctl decided.
        """
        pods = world.pods.get(revision.namespace, {})
        added = self._added_ahead(revision, world)
        return [each for each in added if self._unfit(pods[each.name], revision.name)]

    def _unfit(self, pod: Pod, claim: str) -> bool:
        if claim not in claims_of(pod) or pod.spec.scheduling_gates:
            return True
        group = self._group_specs.get((pod.metadata.namespace, pod.spec.group_name), PodGroup())
        policy = group.spec.scheduling_policy
        basic = policy is not None and policy.gang is None
        return bool(pod.spec.group_name) and (not basic or group.shares(claim))

    def _added_ahead(self, revision: Revision, world: World) -> list[Reference]:
        before, after = _references(revision.previous), _references(revision.data)
        if any(not _is_pod(each) for uid, each in before.items() if uid not in after):
            return []
        pods = world.pods.get(revision.namespace, {})
        claim = decode(revision.data, ResourceClaim)
        return [
            each
            for uid, each in after.items()
            if uid not in before
            and _is_pod(each)
            and (pod := pods.get(each.name)) is not None
            and pod.metadata.uid == uid
            and not pod.spec.node_name
            and not self.expansions.opened(claim, pod)
        ]

    def _notice_group(self, revision: Revision) -> None:
        group = decode(revision.data, PodGroup)
        uid = group.metadata.uid
        self._group_specs[revision.namespace, revision.name] = group
        if revision.type == "DELETED":
            self._groups.pop(uid, None)
        elif revision.type == "ADDED":
            self._groups[uid] = revision.actor in self.users

    def forbidden(self, revision: Revision, world: World) -> list[Reference]:
        """The references that this write removed although claimctl may not remove them."""
        before = _references(revision.previous)
        after = _references(revision.data) if revision.type != "DELETED" else {}
        key = (revision.namespace, revision.name)
        if _folds(revision, world):
            before = {uid: each for uid, each in before.items() if not _is_pod(each)}
        return [
            reference
            for uid, reference in before.items()
            if uid not in after
            and not self._may_go(key, reference, world)
            and not self.expansions.may_replace(revision, reference)
        ]

    def _may_go(self, claim: Key, reference: Reference, world: World) -> bool:
        if _is_pod(reference) or reference.api_group == TOMBSTONE_GROUP:
            if _dead(claim[0], reference, world) or _in_vain(claim, reference, world):
                return True
            return reference.uid in self._listed[claim] and not _runs(claim[0], reference, world)
        if reference.uid in self._own[claim] or _named(claim, reference, world):
            return True
        if reference.uid in self._gone:
            return True
        return _is_group(reference) and self._groups.get(reference.uid, True)


def _references(data: bytes | None) -> dict[str, Reference]:
    if data is None:
        return {}
    return {each.uid: each for each in decode(data, ResourceClaim).status.reserved_for}


def _is_pod(reference: Reference) -> bool:
    return not reference.api_group and reference.resource == "pods"


def _is_group(reference: Reference) -> bool:
    return (reference.api_group, reference.resource) == ("scheduling.k8s.io", "podgroups")


def _folds(revision: Revision, world: World) -> bool:
    """Whether a workload is listed whose entry stands for all its pods.

    The entry does so if the allocation admits any pod (KEP-5194).
    """
    claim = decode(revision.data, ResourceClaim)
    allocation = claim.status.allocation
    return (
        allocation is not None and allocation.reserved_for_any_pod and _lists_workload(claim, world)
    )


def _lists_workload(claim: ResourceClaim, world: World) -> bool:
    """Whether a workload is listed: of a kind of Kubernetes itself, or of a reservation's kind."""
    reservations = world.reservations_of(claim.metadata.key)
    groups = {*WORKLOAD_GROUPS, *(each.spec.workload_ref.api_group for each in reservations)}
    return any(each.api_group in groups for each in claim.status.reserved_for)


def _dead(namespace: str, reference: Reference, world: World) -> bool:
    """Whether the pod is gone, has another UID now, or is done."""
    pod = world.pods.get(namespace, {}).get(reference.name)
    if pod is None or pod.metadata.uid != reference.uid:
        return True
    return is_done(pod)


def _pods(data: bytes | None) -> dict[str, Reference]:
    return {uid: each for uid, each in _references(data).items() if _is_pod(each)}


def _runs(namespace: str, reference: Reference, world: World) -> bool:
    pod = world.pods.get(namespace, {}).get(reference.name)
    return pod is not None and pod.metadata.uid == reference.uid and runs(pod)


def _in_vain(key: Key, reference: Reference, world: World) -> bool:
    """Whether a pending pod cannot use its entry.

    Either the claim is being deleted, or the pod is unschedulable and claimctl releases the claim.
    If the pod is bound nevertheless, the binding is judged.
    """
    pod, claim = world.pods.get(key[0], {}).get(reference.name), world.claims.get(key)
    if pod is None or runs(pod):
        return False
    if claim is not None and claim.metadata.deleting:
        return not pod.spec.node_name
    releases = (one.status.release for one in world.reservations_of(key))
    given_up = any(each is not None for each in releases)
    conditions = {(each.type, each.reason) for each in pod.status.conditions}
    return given_up and ("PodScheduled", "Unschedulable") in conditions


def is_done(pod: Pod) -> bool:
    """Whether the pod will not use its devices any more."""
    if pod.status.phase in TERMINAL and not runs(pod) and not left_behind(pod):
        return True
    return pod.metadata.deleting and not pod.spec.node_name


def _named(claim: Key, reference: Reference, world: World) -> bool:
    """Whether a reservation of the claim names this workload or this PodGroup."""
    for one in world.reservations_of(claim):
        ref = one.spec.workload_ref
        named = (ref.api_group, f"{ref.kind.lower()}s", ref.name)
        if named == (reference.api_group, reference.resource, reference.name):
            return True
        if _is_group(reference) and reference.name == one.status.pod_group_name:
            return True
    return False
