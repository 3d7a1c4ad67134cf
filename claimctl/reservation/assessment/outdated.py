"""Which live reads come before the assessment: of workloads for which the caches may be outdated.

``decide`` assesses the claim again with their answers. The live reads of pods come later, where a
step needs them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from claimctl.reservation.facts.decision import ConfirmWorkload, ListChildren
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase


def outdated_workloads(snapshot: Snapshot) -> Iterator[ConfirmWorkload | ListChildren]:
    """The live reads of workloads, at most one for each reservation: the first case that applies.

    Pods that use the claim hold it anyway, whatever becomes of their workload.
    """
    unused = snapshot.allocated and not snapshot.consumers.count
    for held in snapshot.reservations:
        workload = held.workload
        if not held.resource or workload.phase is WorkloadPhase.UNKNOWN:
            continue
        # 1. The cache shows an end that may not last: the workload may go on by now.
        if unused and not workload.confirmed and _may_go_on(held):
            yield ConfirmWorkload(held.reference_to_any)
        # 2. It is over. What it has made may still make pods.
        elif workload.is_over and workload.children is None:
            if unused:
                root = msgspec.structs.replace(held.reference_to_any, uid=workload.root)
                yield ListChildren(root, orphans=workload.deleting or not workload.exists)
        # 3. The cache lacks it, or the claim names an incarnation that may be a later one.
        elif workload.phase is WorkloadPhase.UNSEEN or _claim_names_another(snapshot, held):
            yield ConfirmWorkload(held.reference_to_any)


def _may_go_on(held: Held) -> bool:
    """Whether the cached workload needs no pods for the claim now, and may need some later: it has
    ended by the rule of a foreign kind, or wants no pod for this sticky claim any more."""
    workload = held.workload
    if workload.by_pods and workload.phase is WorkloadPhase.ENDED:
        return True
    release_begun = held.reservation.status.release is not None
    return workload.claim_over and workload.exists and not release_begun


def _claim_names_another(snapshot: Snapshot, held: Held) -> bool:
    """Whether the claim names another incarnation than the cached one, which no live read showed:
    an earlier one, or one that the cache does not show yet."""
    if not held.workload.exists or held.workload.confirmed:
        return False
    created_for = snapshot.claim.spec.reserved_for if snapshot.claim is not None else None
    named = (*snapshot.non_pods, *((created_for,) if created_for else ()))
    cached = held.reference
    return any(entry.key == cached.key and entry.uid != cached.uid for entry in named)
