"""Which claims are still allocated when the replacement of an evicted pod is scheduled.

The replacement of such a pod can run only where the claim's devices can be reached. What happens to
each kind of claim was measured on real servers (docs/moving-claims.md).
"""

from __future__ import annotations

from enum import StrEnum

from claimctl.reschedule.plan.claims import KnownClaim


class Stickiness(StrEnum):
    """What becomes of a claim when pods that use it leave."""

    GOES_WITH_POD = "GoesWithPod"
    """It was generated for a pod that leaves."""
    NOT_ALLOCATED = "NotAllocated"
    IN_USE = "InUse"
    """Another pod uses it."""
    GHOST = "Ghost"
    """A pod that vanished may still use it."""
    HELD = "Held"
    """It stays allocated until the controller releases it."""
    FOREIGN = "HeldByAnother"
    """Another client than claimctl holds it, or a PodGroup is listed that nothing removes."""
    WHILE_OPEN = "WhileNodeOpen"
    """The replacement exists before the claim is free, and comes back. If the node is closed to the
    replacement, the scheduler deallocates the claim for it."""
    MAY_RETURN = "MayReturn"
    """The same for a StatefulSet, which waits until the old pod is gone, and for a Job: where the
    replacement goes depends on the release and on chance. With the node closed it moves."""


_UNCERTAIN = frozenset({"StatefulSet", "Job"})
"""Owners whose replacements came back on one release and moved on another one."""
STICKY = frozenset(Stickiness) - {Stickiness.GOES_WITH_POD, Stickiness.NOT_ALLOCATED}
"""While the node is open, these claims are still allocated when the replacement is scheduled."""


def stickiness(claim: KnownClaim, leaving: frozenset[str], owner_kind: str) -> Stickiness:
    """What becomes of the claim when the pods with the UIDs ``leaving`` are evicted together.

    Args:
        owner_kind: the kind of the pods' controller.
    """
    if claim.owned_by(leaving):
        return Stickiness.GOES_WITH_POD
    if not claim.allocated:
        return Stickiness.NOT_ALLOCATED
    if not claim.consumers <= leaving:
        return Stickiness.IN_USE
    if claim.ghosts:
        return Stickiness.GHOST
    if claim.foreign_holders or (claim.group_listed and not claim.reservations):
        return Stickiness.FOREIGN
    if claim.held:
        return Stickiness.HELD
    return Stickiness.MAY_RETURN if owner_kind in _UNCERTAIN else Stickiness.WHILE_OPEN
