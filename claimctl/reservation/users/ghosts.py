"""Pods that vanished and may still be running, and pods that may have vanished unseen.

A kubelet that works ends a force-deleted pod within the pod's own grace period; a kubelet that does
not work ends nothing. Neither can it unprepare the devices of a driver that is away. So a ghost
counts as running until its node shows signs of life (``has_ended``). A reservation may ask for a
fixed time instead, and where a node has no Lease, the time is fixed too.

Each controller measures by its own clock. The ghosts in the statuses let two controllers agree on
them; the record never shortens a wait. If another controller has removed a ghost from the record
because it has ended, this controller does not add the ghost again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.memory import SeenGhost, SignsOfLife
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.users.several import (
    is_of_namespace,
    is_several,
    own_grace,
    with_longer_grace,
)
from claimctl.reservation.users.statements import ALL_PODS, Statements
from claimctl.text import listed
from claimctl.wire.reservations import ENDED_PODS_ANNOTATION, NO_SIGNS_SECONDS, ForceDeletedPod

UNSEEN_POD_SECONDS = 5.0
"""For so many seconds, a listed pod that was never seen is expected to appear in the pod cache."""
WORK_SECONDS = 12.0
"""How long a kubelet may take, beyond a pod's grace period, until it has unprepared the pod's
devices. It watches its pods, looks after lost ones every 2 s, and unprepares as the last step."""
RESTARTED_SECONDS = 60.0
"""How long a kubelet may take longer after its start: it looks for claims without pods only once a
minute (kubelet, ``defaultReconcilePeriod`` of its DRA manager)."""
RENEWAL_JITTER = 1.04
"""By so much, a kubelet lengthens the time between two renewals, by chance (the factor 0.04 of
``k8s.io/component-helpers/apimachinery/lease``)."""
REQUEST_SECONDS = 1.0
"""How long a renewal may take (the next one is made so much later), and until it is read."""
STOOD_SECONDS = 35.0
"""How long a driver's ResourceSlices may stand on a node without the driver: the kubelet deletes
them when the driver has been away for 30 s."""
SILENT_SECONDS = 40.0
"""Without a renewal for so long, a node counts as silent (the default of
kube-controller-manager's ``--node-monitor-grace-period`` was 40 s for long, and is 50 s now)."""
MOST = 1000
"""The most nodes and the most ghosts in a status: etcd stores objects of up to 1.5 MB."""


def has_ended(ghost: ForceDeletedPod, age: float, signs: SignsOfLife) -> bool:
    """Whether the kubelet has ended the ghost's containers and unprepared its devices.

    Two renewals must have followed the time that a kubelet needs. The earlier one shows that a
    kubelet worked when that time was over. The time between the two makes up for a pause of the
    kubelet that the rhythm of its renewals does not show, since it ends before the next renewal.

    The drivers must have been there, too. A slice that stands shows only that its driver was there
    less than ``STOOD_SECONDS`` ago. So the slices must have stood for so long since that time was
    over. They must have stood for a minute more if the kubelet was started, because it then asks
    the driver once a minute; and if a driver has returned, because a start of the kubelet while the
    driver was away cannot be seen by its slices.

    Args:
        age: seconds since this process first knew that the pod is gone.
    """
    if signs.ended:
        return True
    over = -seconds_until_ended(ghost, age, signs)
    if len(signs.renewals) < 2 or signs.renewals[0] > over or signs.away:
        return False
    if signs.stood is None:
        return True
    first, last = signs.stood
    return over - last >= STOOD_SECONDS and first - last >= _stood_seconds(signs)


def _stood_seconds(signs: SignsOfLife) -> float:
    """For how long the slices of the drivers must have stood on the node."""
    started = signs.start_age is not None or signs.returned
    return STOOD_SECONDS + RESTARTED_SECONDS if started else STOOD_SECONDS


def longest_pause(every: float) -> float:
    """The longest time between two renewals of a kubelet that renews every so many seconds."""
    return every * RENEWAL_JITTER + REQUEST_SECONDS


def silent_seconds(every: float) -> float:
    """How long a kubelet that renews every so many seconds may be silent."""
    return max(SILENT_SECONDS, 4 * every)


def seconds_until_ended(ghost: ForceDeletedPod, age: float, signs: SignsOfLife) -> float:
    """Seconds until a working kubelet has certainly ended the ghost; negative if that is over."""
    needed = own_grace(ghost) + WORK_SECONDS
    if signs.start_age is None:
        return needed - age
    return needed + RESTARTED_SECONDS - min(age, signs.start_age)


def fixed_grace(reservations: Iterable[Held]) -> float:
    """The longest grace that a reservation asks for, where nothing is known of kubelets."""
    return max((held.reservation.spec.fixed_grace_seconds for held in reservations), default=0.0)


def longer_grace(snapshot: Snapshot, held: Held) -> Blocker | None:
    """A blocker while a withdrawn reservation's grace, longer than all others, still counts: a pod
    may vanish under it just before the reservation is withdrawn."""
    others = [other for other in snapshot.reservations if other.name != held.name]
    if not others or not snapshot.allocated or any(_covers(other, held) for other in others):
        return None
    blockers = (*ghost_blockers(snapshot), *unseen_history(snapshot))
    return max(blockers, key=lambda blocker: blocker.after or 0.0, default=None)


def _covers(held: Held, other: Held) -> bool:
    """Whether a ghost counts for ``held`` at least as long as for ``other``."""
    ours = held.reservation.spec.force_deleted_pod_grace_seconds
    theirs = other.reservation.spec.force_deleted_pod_grace_seconds
    return ours == theirs or (ours is not None and theirs is not None and ours >= theirs)


def present_ghosts(snapshot: Snapshot) -> dict[str, tuple[SeenGhost, Blocker]]:
    """By UID: the ghosts that may still be running, with what each of them waits for."""
    if not snapshot.ghosts:
        return {}
    metas = (held.reservation.metadata for held in snapshot.reservations)
    stated = Statements(meta.annotation(ENDED_PODS_ANNOTATION) or "" for meta in metas)
    present = {}
    for ghost in snapshot.ghosts:
        if stated.tell_of(ghost.pod, ghost.gone_by):
            continue
        if (blocker := _waits_for(snapshot, ghost)) is not None:
            present[ghost.pod.uid] = (ghost, blocker)
    return present


def _waits_for(snapshot: Snapshot, seen: SeenGhost) -> Blocker | None:
    """What a ghost waits for: the longest wait of all reservations; None if it has ended."""
    ghost, age, signs = seen.pod, seen.age, seen.signs
    specs = [held.reservation.spec for held in snapshot.reservations]
    graces = [spec.force_deleted_pod_grace_seconds for spec in specs]
    asked = max((float(seconds) for seconds in graces if seconds is not None), default=0.0)
    who = ghost.name if is_several(ghost) else f"pod {ghost.name}"
    where = f"{who} vanished while running on {ghost.node_name or 'a node'}"
    fixed, left = asked, asked - age
    # how long no Lease could be read; None if one can be read
    missing = age if signs is None else signs.missing_age
    if None in graces and missing is not None:
        # a kubelet of which nothing is known leaves the pod its grace period, too
        own = float(ghost.termination_grace_period_seconds or 0)
        blind = max(NO_SIGNS_SECONDS, own + WORK_SECONDS + RESTARTED_SECONDS)
        blind_left = blind - min(age, missing)
        fixed, left = (blind, blind_left) if blind_left > left else (fixed, left)
    elif None in graces and signs is not None and not has_ended(ghost, age, signs):
        command = f"claimctl release {snapshot.name} -n {snapshot.namespace}"
        if signs.away and not _is_silent(age, signs):
            return Blocker(Reason.FORCE_DELETED_PODS, f"{where}; {_away(ghost, signs, command)}")
        until, text = _until_signs(ghost, age, signs, command)
        after = None if until is None else max(until, left)
        return Blocker(Reason.FORCE_DELETED_PODS, f"{where}; {text}", after)
    if left <= 0:
        return None
    text = f"it counts as running for {fixed:g} s"
    return Blocker(Reason.FORCE_DELETED_PODS, f"{where}; {text}", left)


def _until_signs(
    ghost: ForceDeletedPod, age: float, signs: SignsOfLife, command: str
) -> tuple[float | None, str]:
    """Until when the signs of life are complete, and in words; None while the node is silent.

    The time moves only when something happens. If it is over, the kubelet may have been started.

    Args:
        command: what releases the claim.
    """
    if _is_silent(age, signs):
        return None, (
            "its node shows no sign of life, so nothing has ended it; it counts as running until "
            f"the node is back, or until `{command} --node-is-off {ghost.node_name}`"
        )
    left = _seconds_until_signs(ghost, age, signs)
    more, why = WORK_SECONDS, ""
    if signs.start_age is not None or left <= 0:
        left += 0.0 if signs.start_age is not None else RESTARTED_SECONDS
        more, why = WORK_SECONDS + RESTARTED_SECONDS, ", since it may have been started meanwhile"
    return left if left > 0 else None, (
        "it counts as running until its kubelet has had time to end it (its grace period of "
        f"{own_grace(ghost):g} s and {more:g} s{why}), and has shown two signs of life after that"
        f"{_while_published(signs)}"
    )


def _while_published(signs: SignsOfLife) -> str:
    if signs.stood is None:
        return ""
    return f", while its drivers have published their devices for {_stood_seconds(signs):g} s"


def _is_silent(age: float, signs: SignsOfLife) -> bool:
    silent = min(age, signs.renewals[-1]) if signs.renewals else age
    return silent > silent_seconds(signs.renewal_seconds)


def _seconds_until_signs(ghost: ForceDeletedPod, age: float, signs: SignsOfLife) -> float:
    """Seconds until the signs of life of a node without further events are complete."""
    left = seconds_until_ended(ghost, age, signs)
    look = longest_pause(signs.renewal_seconds) + REQUEST_SECONDS
    if signs.stood is None:
        return left + 2 * look
    stood = max(left + STOOD_SECONDS, _stood_seconds(signs) - signs.stood[0])
    return max(left + 2 * look, stood + look)


def _away(ghost: ForceDeletedPod, signs: SignsOfLife, command: str) -> str:
    """For whom a ghost waits whose driver is away, and how it ends without the driver."""
    many = len(signs.away) > 1
    pod = f"'{ALL_PODS}'" if is_several(ghost) else ghost.name
    return (
        f"{'the drivers' if many else 'the driver'} {listed(signs.away, 3)} "
        f"{'are' if many else 'is'} away from node {ghost.node_name}, so nothing unprepares its "
        f"devices; it counts as running until {'they are' if many else 'it is'} back or the node "
        f"is rebooted, or until `{command} --pod-has-ended {pod}`"
    )


def ghost_blockers(snapshot: Snapshot) -> Iterator[Blocker]:
    """A blocker for each ghost that may still be running."""
    on_record = recorded_ghosts(snapshot)
    for ghost, blocker in present_ghosts(snapshot).values():
        private = ghost.once_recorded and ghost.pod.uid not in on_record
        yield Blocker(blocker.reason, blocker.message, blocker.after, private)


def unseen_history(snapshot: Snapshot) -> Iterator[Blocker]:
    """A blocker while pods that vanished before this process watched may still be running."""
    age = snapshot.memory.blind_age
    if age is not None and snapshot.one_by_one:
        age = max(age, snapshot.memory.unnoticed_age)
    left = fixed_grace(snapshot.reservations) - age if age is not None else 0.0
    if left > 0:
        seconds = f"{fixed_grace(snapshot.reservations):g} s"
        text = f"pods may have vanished while the controller did not watch; it waits {seconds}"
        yield Blocker(Reason.HISTORY_UNKNOWN, text, left, private=True)


def all_on_record(snapshot: Snapshot, recorded: frozenset[str]) -> bool:
    """Whether the statuses, which record the ghosts of these UIDs, tell a controller that starts
    now all that this process has seen."""
    missed = next(unseen_history(snapshot), None)
    return missed is None and present_ghosts(snapshot).keys() <= recorded


def recorded_ghosts(snapshot: Snapshot) -> dict[str, ForceDeletedPod]:
    """The ghosts in the statuses of the claim's reservations, by UID."""
    return {
        ghost.uid: ghost
        for held in snapshot.reservations
        for ghost in held.reservation.status.force_deleted_pods
    }


def ghosts_to_record(
    snapshot: Snapshot, recorded: tuple[ForceDeletedPod, ...]
) -> tuple[ForceDeletedPod, ...]:
    """The ghosts to record, sorted by UID: recorded ones that still count here, and new ones.

    If there are more than ``MOST``, new ones are left out first. This is safe: each controller
    counts all ghosts that it knows, the leader notes no checkpoint while one is left out, and a
    controller that starts without a checkpoint waits for the grace.
    """
    here, elsewhere = {ghost.uid: ghost for ghost in recorded}, recorded_ghosts(snapshot)
    ghosts = []
    for uid, (seen, _) in sorted(present_ghosts(snapshot).items()):
        known = here.get(uid) or elsewhere.get(uid)
        if known is not None:
            ghosts.append(merge_ghosts(known, seen.pod))
        elif not seen.once_recorded and not is_of_namespace(seen.pod):
            appears = not seen.pod.node_name and seen.age < UNSEEN_POD_SECONDS
            ghosts += [] if appears else [seen.pod]
    ghosts.sort(key=lambda ghost: (ghost.uid not in here, ghost.uid))
    return tuple(sorted(ghosts[:MOST], key=lambda ghost: ghost.uid))


def merge_ghosts(recorded: ForceDeletedPod, seen: ForceDeletedPod) -> ForceDeletedPod:
    """Merge the recorded ghost with this controller's observation of the same ghost.

    The recorded time stays. The node is added when it becomes known. If the boot IDs differ, the
    boot ID is removed for good; then no reboot ends the ghost. The longer grace period counts.
    """
    if not recorded.node_name:
        seen = replace(seen, since=recorded.since)
        return with_longer_grace(seen, recorded) if is_several(seen) else seen
    if seen.boot_id and seen.boot_id != recorded.boot_id:
        return with_longer_grace(replace(recorded, boot_id=""), seen)
    return with_longer_grace(recorded, seen)
