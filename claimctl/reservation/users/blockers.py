"""The blockers of a release: why a claim may not be released now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.membership import too_many_finished
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT, is_pod, is_tombstone
from claimctl.reservation.facts.snapshot import Held, LiveList, Snapshot
from claimctl.reservation.facts.unreadable import against_release
from claimctl.reservation.users.binding import binding_left, one_by_one, users_among
from claimctl.text import counted, listed
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ForceDeletedPod


def blockers(
    snapshot: Snapshot, reason: Reason, consumers: Consumers, own: frozenset[str]
) -> tuple[Blocker, ...]:
    """All blockers of a release for ``reason``, from the caches."""
    return (
        *users(snapshot, reason, consumers),
        *_ghosts(snapshot),
        *_unseen_history(snapshot),
        *_unknown(snapshot, own),
        *_finished(snapshot),
        *against_release(snapshot.unreadable),
    )


def users(snapshot: Snapshot, reason: Reason, consumers: Consumers) -> Iterator[Blocker]:
    """Blockers for the pods that use the claim, or that may be bound to it at any moment."""
    using, kept, binding = users_among(snapshot, reason, consumers)
    if using:
        use = counted(len(using), "pod uses the claim", "pods use the claim")
        yield Blocker(Reason.CONSUMERS_LEFT, f"{use}: {_names(using)}")
    if kept:
        pods = counted(len(kept), "pod that is", "pods that are")
        text = f"a scheduler has listed {pods} not bound yet"
        yield Blocker(Reason.PODS_LISTED, f"{text}: {_names(kept)}")
    if binding:
        pods = counted(len(binding), "pod")
        text = f"a scheduler may still bind {pods} to the claim as it was before"
        left = max(binding_left(snapshot, pod) for pod in binding)
        yield Blocker(Reason.PODS_MAY_BE_BOUND, f"{text}: {_names(binding)}", left)


def live_users(snapshot: Snapshot, reason: Reason, live: LiveList) -> Iterator[Blocker]:
    """The same by a live LIST, with its unreadable pods."""
    yield from users(snapshot, reason, Consumers.of(live.pods))
    yield from against_release(live.unreadable)


def _names(pods: Iterable[Pod]) -> str:
    return listed(sorted(pod.metadata.name for pod in pods))


def grace(reservations: Iterable[Held]) -> float:
    """The grace of a ghost in seconds: the longest that a reservation asks for."""
    return max(
        (float(held.reservation.spec.force_deleted_pod_grace_seconds) for held in reservations),
        default=0.0,
    )


def longer_grace(snapshot: Snapshot, held: Held) -> Blocker | None:
    """A blocker while a withdrawn reservation's grace, longer than all others, still counts.

    A pod may vanish under the longest grace just before the reservation with that grace is
    withdrawn.
    """
    others = [each for each in snapshot.reservations if each.name != held.name]
    if not others or not snapshot.allocated or grace((held,)) <= grace(others):
        return None
    found = (*_ghosts(snapshot), *_unseen_history(snapshot))
    return max(found, key=lambda blocker: blocker.after or 0.0, default=None)


def present_ghosts(snapshot: Snapshot) -> tuple[ForceDeletedPod, ...]:
    """The ghosts whose grace is not over."""
    return tuple(ghost for ghost in snapshot.ghosts if _left(snapshot, ghost) > 0)


def _left(snapshot: Snapshot, ghost: ForceDeletedPod) -> float:
    return grace(snapshot.reservations) - snapshot.memory.ghost_age.get(ghost.uid, 0.0)


def _ghosts(snapshot: Snapshot) -> Iterator[Blocker]:
    on_record = recorded_ghosts(snapshot)
    for ghost in present_ghosts(snapshot):
        left, over = _left(snapshot, ghost), ghost.uid in snapshot.memory.once_recorded_ghosts
        where = f"pod {ghost.name} vanished while running on {ghost.node_name or 'a node'}"
        text = f"{where}; it counts as running until forceDeletedPodGraceSeconds have passed"
        private = over and ghost.uid not in on_record
        yield Blocker(Reason.FORCE_DELETED_PODS, text, left, private)


def recorded_ghosts(snapshot: Snapshot) -> dict[str, ForceDeletedPod]:
    """The ghosts in the statuses of the claim's reservations, by UID."""
    return {
        ghost.uid: ghost
        for held in snapshot.reservations
        for ghost in held.reservation.status.force_deleted_pods
    }


def _unseen_history(snapshot: Snapshot) -> Iterator[Blocker]:
    """A blocker while pods that vanished before this process watched may still be running."""
    age = snapshot.memory.blind_age
    if age is not None and one_by_one(snapshot):
        age = max(age, snapshot.memory.unnoticed_age)
    left = grace(snapshot.reservations) - age if age is not None else 0.0
    if left > 0:
        seconds = f"{grace(snapshot.reservations):g} s"
        text = f"pods may have vanished while the controller did not watch; it waits {seconds}"
        yield Blocker(Reason.HISTORY_UNKNOWN, text, left, private=True)


def all_on_record(snapshot: Snapshot, recorded: frozenset[str]) -> bool:
    """Whether the statuses tell a controller that starts now all that this process has seen.

    Args:
        recorded: UIDs of the ghosts in the statuses.
    """
    missed = next(_unseen_history(snapshot), None)
    return missed is None and all(each.uid in recorded for each in present_ghosts(snapshot))


def _unknown(snapshot: Snapshot, own: frozenset[str]) -> Iterator[Blocker]:
    foreign = [
        reference
        for reference in snapshot.references
        if not is_pod(reference) and not is_tombstone(reference) and reference.uid not in own
    ]
    if foreign:
        text = f"the list has entries that claimctl does not own: {listed(map(describe, foreign))}"
        yield Blocker(Reason.UNKNOWN_REFERENCES, text)


def _finished(snapshot: Snapshot) -> Iterator[Blocker]:
    deleting = snapshot.claim is not None and snapshot.claim.metadata.deleting
    if snapshot.group_listed and not deleting and too_many_finished(snapshot):
        yield no_room_for_finished()


def no_room_for_finished() -> Blocker:
    text = f"more than {LIMIT} pods of the PodGroup have finished and are still there"
    advice = "delete the group before the claim, or delete finished pods"
    return Blocker(Reason.FINISHED_PODS_LEFT, f"{text}: {advice}")


def describe(reference: Reference) -> str:
    """The reference as text: resource.group/name."""
    group = f".{reference.api_group}" if reference.api_group else ""
    return f"{reference.resource}{group}/{reference.name}"
