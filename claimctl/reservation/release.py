"""The release protocol: intent, fence, settle, deallocate; each step one write.

The hard race is deciding 'no consumer' while a pod is being created and scheduled. Where the
scheduler writes every pod into the claim before it binds it, a write under the version that was
read before the live LIST settles it. Where it does not (the claim is shared by any pod of a
workload or group), the fence comes first: the holders are taken out and the allocation stays, so
that from then on the scheduler must write to the claim before it starts a pod on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.reservation.consumers import Consumers
from claimctl.reservation.decision import (
    Blocker,
    ListLivePods,
    Need,
    RemoveClaimFinalizer,
    Write,
    WriteList,
)
from claimctl.reservation.reasons import Reason
from claimctl.reservation.references import is_pod, is_pod_group, is_tombstone
from claimctl.reservation.snapshot import LiveList, Snapshot
from claimctl.reservation.verdict import describe, users
from claimctl.wire.claims import Reference

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
"""Put on a claim by the scheduler before it allocates; who deallocates removes it."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next thing to do for a release; with nothing set, it is KCM's turn or all is done."""

    needs: tuple[Need, ...] = ()
    write: Write | None = None
    blockers: tuple[Blocker, ...] = ()
    after: float | None = None


def fenced(snapshot: Snapshot, own: frozenset[str]) -> bool:
    """Whether the scheduler has to write to the claim before it starts a pod on it."""
    return not any(
        reference.uid in own or is_pod_group(reference) for reference in snapshot.references
    )


def next_step(snapshot: Snapshot, reason: Reason, own: frozenset[str]) -> Step:
    """The next step for an allocated claim that nothing seen in the caches stands against."""
    assert snapshot.claim is not None
    if snapshot.claim.metadata.deleting:
        return _settle(snapshot, reason, own, snapshot.memory.deleting_age)
    if _listed_one_by_one(snapshot):
        return _checked(snapshot, reason, own, settled=False)
    if not fenced(snapshot, own):
        return _fence(snapshot, reason, own)
    return _settle(snapshot, reason, own, snapshot.memory.version_age)


def _listed_one_by_one(snapshot: Snapshot) -> bool:
    """Whether the scheduler writes every single pod into the claim before it binds it."""
    return not snapshot.shared and not any(map(is_pod_group, snapshot.references))


def _fence(snapshot: Snapshot, reason: Reason, own: frozenset[str]) -> Step:
    claim = snapshot.claim
    assert claim is not None
    live = snapshot.live()
    if live is None:
        return Step(needs=(ListLivePods(claim.metadata.resource_version),))
    if found := tuple(users(snapshot, reason, Consumers.of(live.pods))):
        return Step(blockers=found)
    if undead := _undead(snapshot, live, own):
        return Step(blockers=undead)
    # A dead pod's entry goes with the holders: KCM would take it out as the last one and
    # deallocate by itself, without waiting for schedulers. A tombstone it leaves alone.
    left = tuple(filter(is_tombstone, snapshot.references))
    return Step(write=WriteList(claim.metadata.resource_version, left, reason=reason, fence=True))


def _settle(snapshot: Snapshot, reason: Reason, own: frozenset[str], age: float) -> Step:
    """Wait until no scheduler can still act on what it saw before, then look again."""
    left = snapshot.rules.settle_seconds - age
    if left > 0:
        text = "waits until every scheduler sees the claim as it is"
        return Step(blockers=(Blocker(Reason.SETTLING, text, left),), after=left)
    return _checked(snapshot, reason, own, settled=True)


def _checked(snapshot: Snapshot, reason: Reason, own: frozenset[str], *, settled: bool) -> Step:
    claim = snapshot.claim
    assert claim is not None
    version = claim.metadata.resource_version
    live = snapshot.live(settled=settled)
    if live is None:
        return Step(needs=(ListLivePods(version, settled),))
    if found := tuple(users(snapshot, reason, Consumers.of(live.pods))):
        return Step(blockers=found)
    if undead := _undead(snapshot, live, own):
        return Step(blockers=undead)
    return Step(write=WriteList(version, (), deallocate=True, reason=reason))


def _undead(snapshot: Snapshot, live: LiveList, own: frozenset[str]) -> tuple[Blocker, ...]:
    """Entries that may not go: pods that exist and do not show to be done, and the unknown."""
    pods = Consumers.of(live.pods)
    done = pods.finished.keys() | pods.dropped.keys()
    names = [
        describe(reference)
        for reference in snapshot.references
        if not _may_go(reference, own, gone=reference.uid not in live.uids or reference.uid in done)
    ]
    if not names:
        return ()
    return (Blocker(Reason.CONSUMERS_LEFT, f"listed and there: {', '.join(names[:3])}"),)


def _may_go(reference: Reference, own: frozenset[str], *, gone: bool) -> bool:
    if is_pod(reference):
        return gone
    return is_tombstone(reference) or is_pod_group(reference) or reference.uid in own


def finalizer_step(snapshot: Snapshot, ours: bool) -> Step:
    """After the deallocation: the scheduler's finalizer, only where we deallocated."""
    claim = snapshot.claim
    assert claim is not None
    if ours and CLAIM_FINALIZER in claim.metadata.finalizers:
        return Step(write=RemoveClaimFinalizer(claim.metadata.resource_version))
    return Step()
