"""The promises, judged from the model's server alone."""

from __future__ import annotations

from tests.model.dialects import Dialect
from tests.model.state import EXISTS, Claim, Entry, Life, Pod, State, There, Write

IN_USE = (Pod.BOUND, Pod.GHOST)


def broken_by(state: State, write: Write, claim: Claim, dialect: Dialect) -> str:
    """Which promise a write of claimctl to the claim breaks; '' for none.

    What begins with 422 is refused by the API server, so nothing comes of it.
    """
    if write.kind == "claim-finalizer":
        return _finalizer(state)
    before = state.claim
    if not before.allocated or (before.there == There.DELETING and _adds(before, claim)):
        return "422: promise 4: an addition that the API forbids"
    if not claim.allocated and not claim.empty:
        return "422: promise 5: the allocation cleared with references left"
    if state.reservation.there == There.GONE and claim.holders & ~before.holders:
        return "promise 5: a hold for a reservation that is gone"
    if claim == before:
        return "promise 7: a write without effect"
    if not claim.allocated:
        used = [pod for pod, there in enumerate(state.pods) if there in IN_USE]
        if used:
            return f"promise 1: deallocated while p{used[0]} uses the device"
    elif claim.empty and not (_fences(before, dialect) and state.reservation.there):
        return "promise 5: the list emptied beside an allocation that nobody will clear"
    return _entries(state, claim, dialect)


def _fences(before: Claim, dialect: Dialect) -> bool:
    return dialect.shared or bool(before.groups)


def _finalizer(state: State) -> str:
    if state.claim.allocated:
        return "promise 5: an allocated claim without the finalizer: KCM never deallocates it"
    if not state.ours and not state.reservation.step:
        return "promise 5: took the finalizer of a claim that it did not deallocate"
    if not state.claim.finalizer:
        return "promise 7: a write without effect"
    return ""


def _adds(before: Claim, after: Claim) -> bool:
    entries = zip(before.entries, after.entries, strict=True)
    return bool(after.holders & ~before.holders) or any(new and new != old for old, new in entries)


def _entries(state: State, after: Claim, dialect: Dialect) -> str:
    """Promise 2: what of pods was taken out was dead, or stands in another form."""
    present = 0 if state.group.there == There.GONE else 1 << state.group.incarnation
    taken = state.claim.groups & ~after.groups
    if taken & present and after.holders:
        return "promise 2: the group taken out beside a hold, and it is there"
    folds = dialect.shared and after.holders
    for pod, (old, new) in enumerate(zip(state.claim.entries, after.entries, strict=True)):
        there = state.pods[pod]
        if old == Entry.POD and new == Entry.NONE and there in (Pod.PENDING, Pod.BOUND):
            if not folds:
                return f"promise 2: the entry of p{pod} removed, which is {Pod(there).name.lower()}"
        elif new == Entry.TOMBSTONE and old != new and there in (Pod.PENDING, Pod.BOUND):
            return f"promise 2: a tombstone for p{pod}, which is {Pod(there).name.lower()}"
    return ""


def left_behind(before: State, after: State, dialect: Dialect) -> str:
    """Promise 5: a reservation goes only when nothing of it is left in the claim."""
    gone = before.reservation.there and not after.reservation.there
    claim = before.claim
    left = claim.holders if before.reservation.recorded or not dialect.shared else claim.empty
    if gone and claim.allocated and left:
        return "promise 5: the reservation let go, and its claim left as it was"
    return ""


def broken_in(state: State) -> str:
    """What is wrong with a state, however it came about."""
    if state.claim.allocated and not state.claim.finalizer:
        return "an allocated claim without the finalizer: nobody will deallocate it"
    if not state.claim.allocated and Pod.BOUND in state.pods:
        return f"p{state.pods.index(Pod.BOUND)} is bound on a claim without allocation"
    return ""


def wrong_at_rest(state: State, dialect: Dialect) -> str:
    """Why a state in which nothing more will happen is not the right one; '' if it is."""
    if stuck := _stuck(state, dialect):
        return stuck
    if any(there in IN_USE for there in state.pods):
        return _unheld(state)
    if state.reservation.there == There.GONE and state.claim.holders:
        return "" if dialect.shared else "leaked: a hold for a reservation that is gone"
    return _unused(state)


def _stuck(state: State, dialect: Dialect) -> str:
    """No pod waits for the claim, and those that are bound may start."""
    for pod, there in enumerate(state.pods):
        wanted = state.claim.there == There.YES and not _ungrouped(state, dialect)
        if there == Pod.PENDING and wanted:
            return f"p{pod} waits for ever"
        if there == Pod.BOUND and not dialect.may_start(state.claim, pod):
            return f"p{pod} is bound and may never start"
    return ""


def _ungrouped(state: State, dialect: Dialect) -> bool:
    """Without a reservation nobody makes the group that the pod waits for."""
    return dialect.groups and not state.group.there and not state.reservation.there


def _unused(state: State) -> str:
    """Nobody uses the claim: it is released, or held for a workload that lives."""
    claim, reservation = state.claim, state.reservation
    if claim.there == There.DELETING:
        kept = claim.groups and reservation.there == There.GONE
        return "" if kept else "the deleted claim stays"
    if reservation.there == There.DELETING:
        return "the deleted reservation stays"
    if not claim.allocated:
        return "a release on record that has no end" if reservation.step else ""
    if reservation.there == There.YES and state.workload.life != Life.ACTIVE:
        return "leaked: the workload is over and the claim is still allocated"
    return _unheld(state)


def _unheld(state: State) -> str:
    """While the workload lives its reference has to stand in the claim."""
    claim, workload = state.claim, state.workload
    wanted = (
        claim.usable
        and workload.life == Life.ACTIVE
        and state.reservation.there == There.YES
        and any(pod in EXISTS for pod in state.pods)
    )
    if wanted and not claim.holders:
        return "the workload lives and does not hold its claim"
    return ""
