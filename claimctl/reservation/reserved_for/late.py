"""A late hold: the list belongs to the pods, and the allocation is the hold while no pod is there.

Some drivers prepare a claim only if its list has one entry, a pod. From Kubernetes 1.37 on, the
scheduler lets no pod beside another entry use a device that only one pod may use. So the hold
stands in the list only while the last pod leaves:

- A pod that is pending or runs has the list for itself. The scheduler alone writes it.
- The last pod is being deleted, and is still bound: the hold joins it. Otherwise
  kube-controller-manager (KCM) would remove the pod as the last entry and deallocate.
- That pod has ended: its entry and the hold leave in one write. The hold alone would keep the next
  pod from starting. An allocated claim with an empty list stays allocated, and the scheduler may
  move it for a pod that cannot reach the device.

While a pod that vanished may still be running, or KCM would list a finished pod again, the hold
stays until a pod comes.
"""

from __future__ import annotations

from claimctl.reservation.facts.pods import leaves_its_device
from claimctl.reservation.facts.references import is_pod
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.users.ghosts import present_ghosts


def may_stand(snapshot: Snapshot, own: frozenset[str], *, released: bool) -> bool:
    """Whether a late hold stands in the list now.

    Args:
        own: UIDs of the listed references that are claimctl's own.
        released: whether the claim is to be released.
    """
    pods, listed = snapshot.consumers, snapshot.listed_uids
    if released and (_lists_only_left(snapshot) or _is_unused(snapshot, own)):
        return True
    waiting = {uid: pod for uid, pod in pods.pending.items() if uid in listed}
    if users := [*pods.bound.values(), *waiting.values()]:
        starting = waiting or _lists_unseen_pod(snapshot)
        return not starting and all(map(leaves_its_device, users))
    if own.isdisjoint(listed) or pods.pending.keys() - pods.gated:
        return False
    return bool(pods.tombstones or present_ghosts(snapshot))


def _lists_only_left(snapshot: Snapshot) -> bool:
    """Whether the list has only pods that no scheduler will bind. They start nowhere, and a release
    takes them out beside a hold."""
    left = snapshot.consumers.left_listed
    return bool(left) and all(e.uid in left for e in snapshot.references if is_pod(e))


def _is_unused(snapshot: Snapshot, own: frozenset[str]) -> bool:
    """Whether the hold stands beside no living pod. It keeps the claim for its release, which may
    wait for a pod that vanished: kube-controller-manager (KCM) waits for none."""
    listed = snapshot.listed_uids
    return not own.isdisjoint(listed) and listed.isdisjoint(snapshot.consumers.alive)


def _lists_unseen_pod(snapshot: Snapshot) -> bool:
    """Whether the list has a pod that the cache has yet to show: the next one may be starting."""
    pods, memory = snapshot.consumers, snapshot.memory
    seen = memory.done_pods | pods.alive.keys() | pods.finished.keys() | pods.dropped.keys()
    seen |= {ghost.pod.uid for ghost in snapshot.ghosts if ghost.pod.node_name}
    return any(is_pod(entry) and entry.uid not in seen for entry in snapshot.references)
