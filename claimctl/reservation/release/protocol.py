"""The release protocol: intent, fence, settle, deallocate. Each step is at most one write.

The hard race: claimctl decides that there is no consumer while a pod is created and scheduled.

- If the scheduler writes every pod into the claim before it binds the pod, one write decides the
  race. It carries the claim's version from before the live LIST, so it conflicts with the
  scheduler's write.
- If, besides, this process noted every pod that the list ever had and saw each of them done, it
  needs neither a LIST nor a wait (``is_proven``): any other pod needs a write to the claim first.
- If pods of a workload or group share the claim without being listed, the fence comes first. It
  removes the entries that let pods in and keeps the allocation. From then on, the scheduler must
  write to the claim before it binds a pod.
"""

from __future__ import annotations

from claimctl.reservation.facts.decision import (
    Blocker,
    ListLivePods,
    RemoveClaimFinalizer,
    Step,
    WriteList,
)
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import (
    LIMIT,
    describe,
    is_pod,
    is_pod_group,
    is_tombstone,
)
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.users.blockers import (
    entries_to_take_out,
    is_foreign,
    live_users,
    no_room_for_finished,
)
from claimctl.text import listed
from claimctl.wire.claims import CLAIM_FINALIZER, Reference

FIGHT_PAUSE = 30.0
"""Seconds to wait if another client keeps undoing the fence."""


def is_fenced(snapshot: Snapshot, own: frozenset[str]) -> bool:
    """Whether the scheduler has to write to the claim before it binds a pod.

    If pods may share a claim through their PodGroup, a fence leaves the workload's reference.
    """
    if snapshot.group_listed or snapshot.admits_unlisted:
        return False
    holds_stay = snapshot.shares_by_group and not snapshot.shared
    return holds_stay or snapshot.listed_uids.isdisjoint(own)


def next_step(snapshot: Snapshot, reason: Reason, own: frozenset[str]) -> Step:
    """The next step for a claim for which the caches show no blocker (``own``: ``Assessment``)."""
    assert snapshot.claim is not None
    version, deleting = snapshot.claim.metadata.resource_version, snapshot.deleting
    # 1. Which step is it? A fence comes first where pods may be bound without a write to the claim,
    # and where entries that claimctl listed ahead have to go. After it, or after the claim's
    # deletion, the claim settles. (A claim whose group has left the list is closed, too: PostFilter
    # may just have removed the group, and a scheduler whose cache still shows it binds pods.)
    closed = is_fenced(snapshot, own)
    taken_out = entries_to_take_out(snapshot, reason, snapshot.consumers)
    fence = not deleting and (bool(taken_out) or (snapshot.needs_fence and not closed))
    settle = not fence and (deleting or closed)
    # 2. Deallocate at once if the claim's own versions prove that no pod uses it.
    deallocation = WriteList(version, (), deallocate=True, reason=reason)
    if not fence and not settle and is_proven(snapshot, own):
        return Step(write=deallocation)
    # 3. Settle: wait until every scheduler sees the claim's present version.
    if settle and (left := snapshot.settling_left) > 0:
        text = "waits until every scheduler sees this version of the claim"
        return Step(blockers=(Blocker(Reason.SETTLING, text, left),))
    # 4. List the pods live. Pods that vanished just before do not matter yet if a fence leaves a
    # hold, which keeps their devices: the LIST after the settle time shows them. Without a hold,
    # kube-controller-manager or the scheduler may deallocate the claim after the fence.
    stays = bool(snapshot.dialect.kept_at_fence(snapshot.non_pods)) and not snapshot.shared
    vanished = not (fence and stays)
    live = snapshot.live if vanished else snapshot.any_live
    if live is None or (settle and not live.settled):
        return Step(needs=(ListLivePods(version, vanished),))
    # 5. A pod that uses the claim, or that may be bound to it, ends the release.
    pods = snapshot.table_of(live.pods)
    if blockers := live_users(snapshot, reason, live, pods):
        return Step(blockers=blockers)
    # 6. Entries must stay whose pods exist and are not done, and entries of other clients.
    going = entries_to_take_out(snapshot, reason, pods) if fence else frozenset[str]()
    if deleting:
        going = frozenset(pods.pending)
    done = pods.finished.keys() | pods.dropped.keys() | going
    gone = {entry.uid for entry in snapshot.references if entry.uid not in live.uids} | done
    if staying := [entry for entry in snapshot.references if not _may_go(entry, own, gone)]:
        text = f"listed, and still existing: {listed(map(describe, staying))}"
        wait = snapshot.rules.dead_reference_seconds
        return Step(blockers=(Blocker(Reason.CONSUMERS_LEFT, text, wait),))
    # 7. Deallocate: the allocation and the whole list go in one write.
    if not fence:
        return Step(write=deallocation)
    # 8. Fence: take out what lets pods in. The claim stays allocated.
    left_entries = left_at_fence(snapshot, pods, own)
    if len(left_entries) > LIMIT:
        return Step(blockers=(no_room_for_finished(),))
    if snapshot.fights:
        text = "another client keeps reverting the release"
        return Step(blockers=(Blocker(Reason.FIGHTING_WRITER, text, FIGHT_PAUSE),))
    return Step(write=WriteList(version, left_entries, reason=reason, fence=True))


def is_proven(snapshot: Snapshot, own: frozenset[str]) -> bool:
    """Whether the claim's own versions prove that no pod uses it and none may begin to.

    - The scheduler writes each pod into the list before it binds the pod, so a pod that was never
      listed cannot start: the deallocation conflicts with the write that lists it.
    - Each version of the claim is one watch event, and the pods of each version are noted. So the
      claim has to be the version that the watch brought, never one that was read live.
    - The caches show no blocker: no noted pod is bound, and none vanished within its grace.
    - The pod cache has shown every noted pod. (One that it never showed is a ghost without a node,
      and may exist: the cache is late.)
    - A pending pod may be bound by now on an older view of the list. Only a live LIST shows that.

    It holds where pods were listed one by one through the whole allocation.
    """
    memory, pods = snapshot.memory, snapshot.consumers
    watched = memory.history_complete and snapshot.evidence.claim_read_for is None
    seen = all(ghost.pod.node_name for ghost in snapshot.ghosts)
    ended = memory.done_pods | pods.finished.keys() | pods.dropped.keys()
    all_ended = all(_may_go(entry, own, ended) for entry in snapshot.references)
    return snapshot.one_by_one and watched and seen and not pods.pending and all_ended


def _may_go(reference: Reference, own: frozenset[str], gone: frozenset[str] | set[str]) -> bool:
    if is_pod(reference):
        return reference.uid in gone
    return is_tombstone(reference) or reference.uid in own


def left_at_fence(
    snapshot: Snapshot, pods: Consumers, own: frozenset[str]
) -> tuple[Reference, ...]:
    """The entries that a fence leaves: tombstones and holds, if the dialect lets them stay.

    - A hold stays. While another pod is still being bound, it keeps the scheduler (PostFilter) from
      deallocating for an unschedulable pod, and kube-controller-manager (KCM) from deallocating a
      claim that is deleted.
    - The entry of a dead pod goes. KCM would remove it as the last entry and deallocate at once,
      without waiting for schedulers.
    - A finished pod gets a tombstone. Without one, KCM would list the pod or its group again,
      except if the allocation admits any pod.

    Args:
        pods: the pods of a live LIST.
    """
    left = {entry.uid: entry for entry in snapshot.non_pods if is_tombstone(entry)}
    holds = [e for e in snapshot.non_pods if e.uid in own and not is_pod_group(e)]
    if snapshot.shared:
        holds = []
    else:
        left |= {uid: e for uid, e in pods.tombstones.items() if uid not in left}
    stay = holds if len(left) + len(holds) <= LIMIT else []
    return snapshot.dialect.kept_at_fence((*stay, *left.values()))


def leave_to_others(snapshot: Snapshot, reason: Reason, own: frozenset[str]) -> Step:
    """Remove claimctl's holds from a list that other clients hold, too; theirs stay.

    The claim stays allocated. The client that removes the last entry also deallocates. claimctl
    leaves only when nothing else blocks the release, and no entry of an existing pod is left:
    without our hold, KCM would remove and re-add finished pods in a loop. Entries of pending pods
    that claimctl listed ahead go first, and the binding time blocks the release then.
    """
    assert snapshot.claim is not None
    others = tuple(entry for entry in snapshot.non_pods if is_foreign(entry, own))
    held = len(others) < len(snapshot.non_pods)
    if not others or not held or not snapshot.one_by_one or snapshot.deleting:
        return Step()
    version, live = snapshot.claim.metadata.resource_version, snapshot.live
    if live is None:
        return Step(needs=(ListLivePods(version),))
    pods = snapshot.table_of(live.pods)
    if blockers := live_users(snapshot, reason, live, pods):
        return Step(blockers=blockers)
    if waiting := entries_to_take_out(snapshot, reason, pods):
        kept = tuple(entry for entry in snapshot.references if entry.uid not in waiting)
        return Step(write=WriteList(version, kept, reason=reason))
    of_pods = (entry for entry in snapshot.references if is_pod(entry) or is_tombstone(entry))
    if any(entry.uid in live.uids for entry in of_pods):
        return Step()
    return Step(write=WriteList(version, others, reason=reason))


def finalizer_step(snapshot: Snapshot, *, on_record: bool) -> Step:
    """After the deallocation: remove the scheduler's finalizer, if claimctl deallocated.

    A scheduler adds the finalizer just before it allocates the claim anew. So the finalizer is
    removed at once only from the version that this process wrote when it deallocated. In a later
    version the finalizer may be a new one. It is removed there if the release is on record and the
    claim has not changed for the settle time.
    """
    claim = snapshot.claim
    assert claim is not None
    ours = snapshot.memory.deallocated
    if CLAIM_FINALIZER not in claim.metadata.finalizers or not (ours or on_record):
        return Step()
    left = 0.0 if ours else snapshot.rules.settle_seconds - snapshot.memory.version_age
    if left > 0:
        text = "waits to see whether a scheduler allocates the claim anew"
        return Step(blockers=(Blocker(Reason.SETTLING, text, left),))
    return Step(write=RemoveClaimFinalizer(claim.metadata.resource_version))
