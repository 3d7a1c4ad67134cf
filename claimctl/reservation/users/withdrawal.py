"""Withdraw a reservation beside a running PodGroup: the group keeps the claim for its pods.

A PodGroup's reference keeps a claim allocated while a pod of the group is bound. With no such pod,
the scheduler removes the reference for any unschedulable pod (PostFilter), and no component
deallocates the claim then. So the hold leaves only beside a bound pod of the group. From then on
the cluster's own rules apply: kube-controller-manager (KCM) deallocates when the group is gone.

The steps are:

1. claimctl removes its finalizer from the group. The hold in the list still keeps the claim.
2. claimctl waits until no other controller may add the hold again (the settle time).
3. claimctl reads the group, its pods and the workload live, and removes the hold.
4. The reservation goes. claimctl adds the hold no more, also if the pods end meanwhile: another
   controller may have removed the reservation already, and would not see the hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.membership import made_by_claimctl
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.references import is_pod_group
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.facts.workloads import group_of
from claimctl.wire.claims import Reference
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import FINALIZER


def leaves_to_group(snapshot: Snapshot) -> bool:
    """Whether all reservations are withdrawn and leave the claim to a listed group, by the caches.

    A pod of the group is bound, or the hold has left already. claimctl's finalizer of the group may
    still be there.
    """
    if not snapshot.reservations or not all(held.withdrawn for held in snapshot.reservations):
        return False
    if not any(_present(snapshot)):
        return False
    return bool(running_groups(snapshot, snapshot.pods)) or _hold_has_left(snapshot)


def left_to_group(snapshot: Snapshot) -> bool:
    """The same, after claimctl's finalizers of the listed groups are gone."""
    return leaves_to_group(snapshot) and not any(
        FINALIZER in group.metadata.finalizers
        for group in _listed_groups(snapshot)
        if made_by_claimctl(group)
    )


def hold_has_left(snapshot: Snapshot) -> bool:
    """Whether a withdrawn hold has left the claim to its group, so that nothing is released."""
    return leaves_to_group(snapshot) and _hold_has_left(snapshot)


def _hold_has_left(snapshot: Snapshot) -> bool:
    """Whether statuses record holds on this claim, and the list has none of them."""
    assert snapshot.claim is not None
    statuses = (held.reservation.status for held in snapshot.reservations)
    uid = snapshot.claim.metadata.uid
    recorded = {
        status.reserved_for.uid
        for status in statuses
        if status.reserved_for is not None and status.claim_uid == uid
    }
    return bool(recorded) and recorded.isdisjoint(each.uid for each in snapshot.references)


def running_groups(snapshot: Snapshot, pods: Iterable[Pod]) -> tuple[Reference, ...]:
    """The listed PodGroups that exist and have a bound pod among ``pods``."""
    running = {group_of(pod.spec) for pod in Consumers.of(pods).bound.values()}
    return tuple(each for each in _present(snapshot) if each.name in running)


def _present(snapshot: Snapshot) -> Iterator[Reference]:
    """The listed PodGroups that exist; none unless the claim is allocated and stays."""
    claim = snapshot.claim
    serves = DIALECTS[snapshot.rules.dialect].groups and not snapshot.shared
    if claim is None or not snapshot.allocated or claim.metadata.deleting or not serves:
        return
    there = {group.metadata.uid for group in _listed_groups(snapshot)}
    for each in snapshot.references:
        if is_pod_group(each) and each.uid in there:
            yield each


def _listed_groups(snapshot: Snapshot) -> Iterator[PodGroup]:
    uids = {each.uid for each in snapshot.references if is_pod_group(each)}
    return (group for group in snapshot.groups if group.metadata.uid in uids)
