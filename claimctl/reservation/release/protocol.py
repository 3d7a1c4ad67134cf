"""The release protocol: intent, fence, settle, deallocate. Each step is at most one write.

The hard race: claimctl decides that there is no consumer while a pod is created and scheduled.

- If the scheduler writes every pod into the claim before it binds the pod, one write decides the
  race. It carries the claim's version from before the live LIST, so it conflicts with the
  scheduler's write.
- If, besides, this process noted every pod that the list ever had and saw each of them done, it
  needs neither a LIST nor a wait (``_proven``): any other pod needs a write to the claim first.
- If pods of a workload or group share the claim without being listed, the fence comes first. It
  removes the entries that let pods in and keeps the allocation. From then on, the scheduler must
  write to the claim before it binds a pod.
"""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.reservation.facts.decision import (
    Blocker,
    ListLivePods,
    Need,
    RemoveClaimFinalizer,
    Write,
    WriteList,
)
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.membership import needing_tombstones
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import (
    LIMIT,
    is_pod,
    is_pod_group,
    is_tombstone,
    tombstone,
)
from claimctl.reservation.facts.snapshot import LiveList, Snapshot
from claimctl.reservation.users.binding import (
    begins_with_fence,
    entries_to_take_out,
    keeps_pods_out,
    may_share_by_group,
    one_by_one,
)
from claimctl.reservation.users.blockers import describe, live_users, no_room_for_finished
from claimctl.text import listed
from claimctl.wire.claims import CLAIM_FINALIZER, Reference

FIGHT_PAUSE = 30.0
"""Seconds to wait if another client keeps undoing the fence."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next step of a release. If no field is set, there is nothing to do."""

    needs: tuple[Need, ...] = ()
    write: Write | None = None
    blockers: tuple[Blocker, ...] = ()


def fenced(snapshot: Snapshot, own: frozenset[str]) -> bool:
    """Whether the scheduler has to write to the claim before it binds a pod.

    If pods may share a claim through their PodGroup, a fence leaves the workload's reference.
    """
    if snapshot.group_listed or keeps_pods_out(snapshot):
        return False
    holds_stay = may_share_by_group(snapshot) and not snapshot.shared
    return holds_stay or not any(reference.uid in own for reference in snapshot.references)


def next_step(snapshot: Snapshot, reason: Reason, own: frozenset[str]) -> Step:
    """The next step for an allocated claim for which the caches show no blocker."""
    assert snapshot.claim is not None
    if snapshot.claim.metadata.deleting:
        return _settle(snapshot, reason, own)
    if entries_to_take_out(snapshot, reason, snapshot.consumers()):
        return _fence(snapshot, reason, own)
    if not fenced(snapshot, own):
        if begins_with_fence(snapshot):
            return _fence(snapshot, reason, own)
        if _proven(snapshot, own):
            return _deallocate(snapshot, reason)
        return _checked(snapshot, reason, own, settled=False)
    # The claim is fenced, or its group has left the list. In the latter case PostFilter may just
    # have removed the group, and a scheduler whose cache still shows it binds pods without a write.
    return _settle(snapshot, reason, own)


def _proven(snapshot: Snapshot, own: frozenset[str]) -> bool:
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
    memory, consumers = snapshot.memory, snapshot.consumers()
    watched = memory.noted and snapshot.evidence.claim_read_for is None
    seen = all(ghost.node_name for ghost in snapshot.ghosts)
    ended = memory.done_pods | consumers.finished.keys() | consumers.dropped.keys()
    listed = all(_may_go(each, own, gone=each.uid in ended) for each in snapshot.references)
    return one_by_one(snapshot) and watched and seen and not consumers.pending and listed


def _deallocate(snapshot: Snapshot, reason: Reason) -> Step:
    assert snapshot.claim is not None
    version = snapshot.claim.metadata.resource_version
    return Step(write=WriteList(version, (), deallocate=True, reason=reason))


def leave_to_others(snapshot: Snapshot, reason: Reason, own: frozenset[str]) -> Step:
    """Remove claimctl's holds from a list that other clients hold, too; theirs stay.

    The claim stays allocated. The client that removes the last entry also deallocates. claimctl
    leaves only when nothing else blocks the release. Tombstones and entries of pods that exist
    wait until the pods are gone, because kube-controller-manager would move those of finished pods
    for ever. Entries of pending pods that claimctl listed ahead go first. Then the binding time
    blocks the release, and the hold keeps the claim allocated meanwhile.
    """
    claim = snapshot.claim
    assert claim is not None
    others = tuple(each for each in snapshot.references if _is_foreign(each, own))
    held = any(not _is_foreign(each, own) and not is_pod(each) for each in snapshot.references)
    if not others or not held or not one_by_one(snapshot) or claim.metadata.deleting:
        return Step()
    live = snapshot.live()
    if live is None:
        return Step(needs=(ListLivePods(claim.metadata.resource_version),))
    if found := tuple(live_users(snapshot, reason, live)):
        return Step(blockers=found)
    version, listed = claim.metadata.resource_version, snapshot.references
    if waiting := entries_to_take_out(snapshot, reason, Consumers.of(live.pods)):
        kept = tuple(each for each in listed if each.uid not in waiting)
        return Step(write=WriteList(version, kept, reason=reason))
    pods = (each for each in listed if is_pod(each) or is_tombstone(each))
    if any(each.uid in live.uids for each in pods):
        return Step()
    return Step(write=WriteList(version, others, reason=reason))


def _is_foreign(reference: Reference, own: frozenset[str]) -> bool:
    return not is_pod(reference) and not is_tombstone(reference) and reference.uid not in own


def _fence(snapshot: Snapshot, reason: Reason, own: frozenset[str]) -> Step:
    """Take out what lets pods in. The claim stays allocated.

    Pods that vanished just before do not matter yet if the fence leaves a hold, which keeps their
    devices: the LIST after the settle time shows them. Without a hold, kube-controller-manager or
    the scheduler may deallocate the claim after the fence.
    """
    claim = snapshot.claim
    assert claim is not None
    vanished = not _leaves_entries(snapshot)
    live = snapshot.live(vanished=vanished)
    if live is None:
        return Step(needs=(ListLivePods(claim.metadata.resource_version, vanished=vanished),))
    if found := tuple(live_users(snapshot, reason, live)):
        return Step(blockers=found)
    waiting = entries_to_take_out(snapshot, reason, Consumers.of(live.pods))
    if undead := _unreleasable_entries(snapshot, live, own, waiting):
        return Step(blockers=undead)
    left = _left_at_fence(snapshot, live, own)
    if (against := _against_fence(snapshot, left)) is not None:
        return Step(blockers=(against,))
    return Step(write=WriteList(claim.metadata.resource_version, left, reason=reason, fence=True))


def _leaves_entries(snapshot: Snapshot) -> bool:
    """Whether a fence leaves entries in the list that are no pods."""
    return DIALECTS[snapshot.rules.dialect].lists_beside_others and not snapshot.shared


def _left_at_fence(
    snapshot: Snapshot, live: LiveList, own: frozenset[str]
) -> tuple[Reference, ...]:
    """The entries that a fence leaves: tombstones and holds.

    - A hold stays. While another pod is still being bound, it keeps the scheduler (PostFilter) from
      deallocating for an unschedulable pod, and kube-controller-manager (KCM) from deallocating a
      claim that is deleted.
    - The entry of a dead pod goes. KCM would remove it as the last entry and deallocate at once,
      without waiting for schedulers.
    - A finished pod gets a tombstone. Without one, KCM would list the pod or its group again,
      except if the allocation admits any pod.

    If the scheduler lists no pod beside other entries, the fence leaves nothing.
    """
    if not DIALECTS[snapshot.rules.dialect].lists_beside_others:
        return ()
    left = {each.uid: each for each in snapshot.no_pods if is_tombstone(each)}
    if not snapshot.shared:
        for pod in needing_tombstones(snapshot, Consumers.of(live.pods)):
            left.setdefault(pod.metadata.uid, tombstone(pod.metadata))
    holds = [each for each in snapshot.references if each.uid in own and not is_pod_group(each)]
    stay = holds if not snapshot.shared and len(left) + len(holds) <= LIMIT else []
    return (*stay, *left.values())


def _against_fence(snapshot: Snapshot, left: tuple[Reference, ...]) -> Blocker | None:
    if len(left) > LIMIT:
        return no_room_for_finished()
    if snapshot.memory.repeated_writes >= snapshot.rules.fight_limit:
        text = "another client keeps reverting the release"
        return Blocker(Reason.FIGHTING_WRITER, text, FIGHT_PAUSE)
    return None


def _settle(snapshot: Snapshot, reason: Reason, own: frozenset[str]) -> Step:
    """Wait until every scheduler sees the claim's present version, then check the pods again."""
    left = snapshot.settling_left
    if left > 0:
        text = "waits until every scheduler sees this version of the claim"
        return Step(blockers=(Blocker(Reason.SETTLING, text, left),))
    return _checked(snapshot, reason, own, settled=True)


def _checked(snapshot: Snapshot, reason: Reason, own: frozenset[str], *, settled: bool) -> Step:
    claim = snapshot.claim
    assert claim is not None
    version = claim.metadata.resource_version
    live = snapshot.live(settled=settled)
    if live is None:
        return Step(needs=(ListLivePods(version, settled),))
    if found := tuple(live_users(snapshot, reason, live)):
        return Step(blockers=found)
    waiting = frozenset(Consumers.of(live.pods).pending if claim.metadata.deleting else ())
    if undead := _unreleasable_entries(snapshot, live, own, waiting):
        return Step(blockers=undead)
    return _deallocate(snapshot, reason)


def _unreleasable_entries(
    snapshot: Snapshot, live: LiveList, own: frozenset[str], waiting: frozenset[str]
) -> tuple[Blocker, ...]:
    """A blocker for entries that must stay: pods that exist and are not done, and unknown entries.

    Args:
        waiting: UIDs of the pending pods whose entries may be removed.
    """
    pods = Consumers.of(live.pods)
    done = pods.finished.keys() | pods.dropped.keys() | waiting
    names = [
        describe(reference)
        for reference in snapshot.references
        if not _may_go(reference, own, gone=reference.uid not in live.uids or reference.uid in done)
    ]
    if not names:
        return ()
    text = f"listed, and still existing: {listed(names)}"
    return (Blocker(Reason.CONSUMERS_LEFT, text, snapshot.rules.dead_reference_seconds),)


def _may_go(reference: Reference, own: frozenset[str], *, gone: bool) -> bool:
    if is_pod(reference):
        return gone
    return is_tombstone(reference) or reference.uid in own


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
