"""Take out the entries of pending pods that claimctl listed ahead and left behind.

A controller takes such entries out before its hold leaves the claim. Without a controller they
stay behind in two situations:

- The ClaimReservation goes while no controller runs: somebody takes its finalizer away, or deletes
  the CRDs. The hold and the entries stay in the list.
- Another client then takes the hold out of the list, by hand or from a backup, and leaves the
  entries.

Two entries keep the claim allocated, also on a node that no pod can use: the scheduler frees a
claim for an unschedulable pod only if the claim lists nobody else (PostFilter), and
kube-controller-manager (KCM) removes no pending pod.

A scheduler may be binding such a pod without another write to the claim (see
``reservation.users.blockers``). So the claim has to stay allocated until the binding time after
the entries have left is over, also if its last other pod ends meanwhile. A guard in the list does
that: an entry of a kind that does not exist, with the claim's own UID. Controllers leave what they
do not know. A run that is cut off leaves the guard, and the next run goes on from there.
"""

from __future__ import annotations

from claimctl.downgrade.expansion import left_ahead
from claimctl.reservation.facts.decision import Blocker, WriteList
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import guard
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.users.blockers import longest_binding_left
from claimctl.text import counted, listed
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod


def left_behind(claim: ResourceClaim, pods: Consumers) -> tuple[Pod, ...]:
    """The pending pods that claimctl listed ahead, sorted by name."""
    left = (pods.pending[uid] for uid in left_ahead(claim, pods.pending))
    return tuple(sorted(left, key=lambda pod: pod.metadata.name))


def complaint(left: tuple[Pod, ...]) -> str:
    """What is wrong with the claim, as one line."""
    if not left:
        return "guarded by an earlier run that took waiting pods out of its list"
    pods = counted(len(left), "waiting pod")
    names = listed([pod.metadata.name for pod in left])
    return (
        f"lists {pods} for claimctl, which does not hold the claim any more: {names}; their "
        "entries may keep the devices where no pod can use them"
    )


def is_guarded(claim: ResourceClaim) -> bool:
    return guard(claim) in claim.status.reserved_for


def take_out(claim: ResourceClaim, left: tuple[Pod, ...], *, held: bool) -> WriteList:
    """The write that takes the entries out, and puts the guard in their place. ``held``: others
    keep the claim allocated, so it needs no guard."""
    uids = {pod.metadata.uid for pod in left} | {claim.metadata.uid}
    kept = (entry for entry in claim.status.reserved_for if entry.uid not in uids)
    guards = () if held else (guard(claim),)
    return WriteList(claim.metadata.resource_version, (*kept, *guards))


def still_binding(snapshot: Snapshot) -> Blocker | None:
    """A blocker while a scheduler may be binding a pod on the list as it was before."""
    left = longest_binding_left(snapshot)
    text = "a scheduler may still bind waiting pods to the claim as it was before"
    return Blocker(Reason.PODS_MAY_BE_BOUND, text, left) if left > 0 else None
