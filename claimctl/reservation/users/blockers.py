"""The blockers of a release: why a claim may not be released now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT, describe, is_pod, is_tombstone
from claimctl.reservation.facts.snapshot import LiveList, Snapshot
from claimctl.reservation.users.binding import users_among
from claimctl.reservation.users.ghosts import ghost_blockers, unseen_history
from claimctl.text import counted, listed
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod
from claimctl.wire.unreadable import Unreadable


def blockers(snapshot: Snapshot, reason: Reason, own: frozenset[str]) -> Iterator[Blocker]:
    """All blockers of a release for ``reason``, from the caches.

    Args:
        own: UIDs of the listed references that are claimctl's own, with those of PodGroups.
    """
    yield from users(snapshot, reason, snapshot.consumers)
    yield from ghost_blockers(snapshot)
    yield from unseen_history(snapshot)
    if foreign := [entry for entry in snapshot.no_pods if is_foreign(entry, own)]:
        text = f"the list has entries that claimctl does not own: {listed(map(describe, foreign))}"
        yield Blocker(Reason.UNKNOWN_REFERENCES, text)
    deleting = snapshot.claim is not None and snapshot.claim.metadata.deleting
    if snapshot.group_listed and not deleting and snapshot.too_many_finished:
        yield no_room_for_finished()
    yield from against_release(snapshot.unreadable)


def users(snapshot: Snapshot, reason: Reason, consumers: Consumers) -> Iterator[Blocker]:
    """Blockers for the pods that use the claim, or that may be bound to it at any moment."""
    pods = users_among(snapshot, reason, consumers)
    if pods.using:
        use = counted(len(pods.using), "pod uses the claim", "pods use the claim")
        yield Blocker(Reason.CONSUMERS_LEFT, f"{use}: {names_of(pods.using)}")
    if pods.kept:
        waiting = counted(len(pods.kept), "pod that is", "pods that are")
        text = f"a scheduler has listed {waiting} not bound yet: {names_of(pods.kept)}"
        yield Blocker(Reason.PODS_LISTED, text)
    if pods.binding:
        binding = counted(len(pods.binding), "pod")
        text = f"a scheduler that still sees an older version of the claim may bind {binding}"
        message = f"{text}: {names_of(pods.binding)}"
        yield Blocker(Reason.PODS_MAY_BE_BOUND, message, pods.binding_left)


def live_users(
    snapshot: Snapshot, reason: Reason, live: LiveList, consumers: Consumers
) -> tuple[Blocker, ...]:
    """The same by the pods of a live LIST, with its unreadable pods."""
    return (*users(snapshot, reason, consumers), *against_release(live.unreadable))


def against_release(unread: Iterable[Unreadable]) -> Iterator[Blocker]:
    """A blocker for each unreadable object that may use the claim, hold it or make pods for it."""
    return (Blocker(Reason.UNREADABLE, item.describe()) for item in unread)


def names_of(pods: Iterable[Pod]) -> str:
    return listed(sorted(pod.metadata.name for pod in pods))


def is_foreign(reference: Reference, own: frozenset[str]) -> bool:
    """Whether another client keeps this entry in the list, to hold the claim."""
    return not is_pod(reference) and not is_tombstone(reference) and reference.uid not in own


def no_room_for_finished() -> Blocker:
    text = f"more than {LIMIT} pods of the PodGroup have finished and are still there"
    advice = "delete the group before the claim, or delete finished pods"
    return Blocker(Reason.FINISHED_PODS_LEFT, f"{text}: {advice}")
