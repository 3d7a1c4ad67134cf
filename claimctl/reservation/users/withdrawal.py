"""Withdraw a reservation beside a running PodGroup: the group keeps the claim for its pods.

A PodGroup's reference keeps a claim allocated while a pod of the group is bound. With no such pod,
the scheduler removes the reference for any unschedulable pod (PostFilter), and no component
deallocates the claim then. So the hold leaves only beside a bound pod of the group. From then on
the cluster's own rules apply: kube-controller-manager (KCM) deallocates when the group is gone.

The steps are:

1. claimctl removes its finalizer from the group (``reservation.pod_groups``). The hold in the list
   still keeps the claim.
2. claimctl waits until no other controller may add the hold again (the settle time).
3. claimctl reads the group, its pods and the workload live, and removes the hold.
4. The reservation goes (``release.objects``). claimctl adds the hold no more, also if the pods end
   meanwhile: another controller may have removed the reservation already, and would not see the
   hold.
"""

from __future__ import annotations

from claimctl.reservation.facts.decision import (
    Blocker,
    ConfirmPods,
    ConfirmWorkload,
    ListLivePods,
    Step,
    WriteList,
)
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_pod_group, is_tombstone
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import FINALIZER


def withdraws_beside_group(snapshot: Snapshot) -> bool:
    """Whether all reservations are withdrawn and leave the claim to a listed group, by the caches:
    a pod of the group is bound, or the hold has left already. It is so from step 1 on."""
    if not snapshot.reservations or not all(
        held.withdrawn_by_user for held in snapshot.reservations
    ):
        return False
    if not present_groups(snapshot):
        return False
    return bool(running_groups(snapshot, snapshot.consumers)) or _no_hold_listed(snapshot)


def is_left_to_group(snapshot: Snapshot) -> bool:
    """The same after step 1: claimctl's finalizers of the listed groups are gone."""
    return withdraws_beside_group(snapshot) and not any(
        FINALIZER in group.metadata.finalizers
        for group in snapshot.groups
        if group.made_by_claimctl and group.metadata.uid in snapshot.listed_uids
    )


def hold_has_left(snapshot: Snapshot) -> bool:
    """The same after step 3: the hold has left the list, so that nothing is released."""
    return withdraws_beside_group(snapshot) and _no_hold_listed(snapshot)


def _no_hold_listed(snapshot: Snapshot) -> bool:
    """Whether statuses record holds on this claim, and the list has none of them."""
    uid = snapshot.claim.metadata.uid if snapshot.claim is not None else ""
    statuses = [held.reservation.status for held in snapshot.reservations]
    recorded = {s.reserved_for.uid for s in statuses if s.reserved_for and s.claim_uid == uid}
    return bool(recorded) and recorded.isdisjoint(snapshot.listed_uids)


def running_groups(snapshot: Snapshot, consumers: Consumers) -> tuple[Reference, ...]:
    """The listed PodGroups that exist and have a bound pod."""
    running = {name for uid, name in consumers.groups.items() if uid in consumers.bound}
    return tuple(entry for entry in present_groups(snapshot) if entry.name in running)


def present_groups(snapshot: Snapshot) -> tuple[Reference, ...]:
    """The listed PodGroups that exist; none unless the claim is allocated and stays."""
    stays = snapshot.allocated and not snapshot.deleting
    if not stays or snapshot.shared or not snapshot.dialect.groups:
        return ()
    uids = {group.metadata.uid for group in snapshot.groups}
    return tuple(entry for entry in snapshot.non_pods if is_pod_group(entry) and entry.uid in uids)


def remove_hold_beside_group(snapshot: Snapshot, own: frozenset[str]) -> Step:
    """Steps 2 and 3: remove claimctl's holds from a claim that ``is_left_to_group``.

    The tombstones of the groups' pods go in the same write: KCM finds the group in the list.

    Args:
        own: see ``Assessment``.
    """
    # The list still has a hold.
    holds = {entry.uid for entry in snapshot.non_pods if entry.uid in own}
    holds -= {entry.uid for entry in snapshot.non_pods if is_pod_group(entry)}
    if snapshot.claim is None or not holds:
        return Step()
    # Step 2: no other controller may add the hold again.
    settle = snapshot.rules.settle_seconds
    left = settle - min(held.deleting_age for held in snapshot.reservations)
    if left > 0:
        text = "waits until every controller sees that the reservation is withdrawn"
        return Step(blockers=(Blocker(Reason.SETTLING, text, left),))
    # Step 3: live reads show the workloads, the pods, and a group with a bound pod.
    version, live = snapshot.claim.metadata.resource_version, snapshot.live
    pods = snapshot.table_of(live.pods) if live is not None else Consumers.of(())
    groups = running_groups(snapshot, pods)
    present, gone = snapshot.evidence.present_pods, snapshot.evidence.gone_pods
    unconfirmed = tuple(group for group in groups if group.uid not in present | gone)
    needs = (
        *(
            ConfirmWorkload(held.reference_to_any)
            for held in snapshot.reservations
            if held.workload.exists and not held.workload.confirmed
        ),
        *((ListLivePods(version),) if live is None else ()),
        *((ConfirmPods(unconfirmed),) if unconfirmed else ()),
    )
    if needs:
        return Step(needs=needs)
    # live, there is no such group with a bound pod: the hold stays until the caches show that, too
    if not any(group.uid in present for group in groups):
        return Step()
    # The hold goes, with the tombstones that the group makes superfluous.
    covered = {uid for uid in pods.finished if pods.groups.get(uid) in snapshot.listed_groups}
    remaining = tuple(
        entry
        for entry in snapshot.references
        if entry.uid not in holds and not (is_tombstone(entry) and entry.uid in covered)
    )
    return Step(write=WriteList(version, remaining, reason=Reason.WITHDRAWN))
