"""What a driver with some habits does: pure functions that all drivers call.

The first habit that refuses decides. Times add up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kube_in_process.habits.habit import (
    PREPARE,
    UNPREPARE,
    Checkpoint,
    Checkpointed,
    Habit,
    Situation,
    Stage,
)
from kube_in_process.objects import Object

Habits = Sequence[Habit]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a driver answers to a call, and what it remembers of the claim then.

    Attributes:
        error: the text of the refusal, or ''.
        entry: the claim in the checkpoint from now on; None if it is not there.
    """

    error: str
    entry: Checkpointed | None


def taken_up(habits: Iterable[Habit], new: Habit) -> tuple[Habit, ...]:
    """The habits with one more; it replaces one of its name on the same node."""
    kept = (habit for habit in habits if (habit.name, habit.node) != (new.name, new.node))
    return (*kept, new)


def dropped(habits: Iterable[Habit], names: Collection[str], node: str) -> tuple[Habit, ...]:
    """The habits without those of some names, on one node or anywhere; no names means all."""
    return tuple(
        habit
        for habit in habits
        if (names and habit.name not in names) or (node and node != habit.node)
    )


def on_node(habits: Iterable[Habit], node: str) -> Habits:
    """The habits that a driver has on a node."""
    return [habit for habit in habits if habit.node in ("", node)]


def is_there(habits: Habits) -> bool:
    """Whether kubelets have the driver registered."""
    return all(habit.is_there() for habit in habits)


def seconds(habits: Habits, verb: str) -> float:
    """How long a call takes."""
    return sum(habit.seconds(verb) for habit in habits)


def prepared(habits: Habits, situation: Situation, lacks: str = "") -> Reply:
    """NodePrepareResources for one claim.

    Args:
        lacks: a device of the claim that the driver does not have, or ''.
    """
    error = _refusal(habits, PREPARE, situation)
    if not error and lacks:
        error = f"prepare failed: requested device is not allocatable: {lacks}"
    if not error:
        done = Checkpointed(situation.claim, Stage.COMPLETED, situation.now, situation.boot)
        return Reply("", done)
    left = [habit.leaves(situation, error) for habit in habits]
    changed = [entry for entry in left if entry != situation.known]
    return Reply(error, changed[0] if changed else situation.known)


def unprepared(habits: Habits, situation: Situation) -> Reply:
    """NodeUnprepareResources for one claim."""
    error = _refusal(habits, UNPREPARE, situation)
    if error:
        return Reply(error, situation.known)
    kept = [habit.remembers(situation) for habit in habits]
    return Reply("", next((entry for entry in kept if entry is not None), None))


def container_refusal(habits: Habits, claim: Object, pod: str, pods: Collection[str]) -> str:
    """Why no container of a pod may be created that uses a prepared claim, or ''."""
    refusals = (habit.refuses_container(claim, pod, pods) for habit in habits)
    return next(filter(None, refusals), "")


def rebooted(habits: Habits, checkpoint: Checkpoint) -> dict[str, Checkpointed]:
    """The checkpoint after a reboot of the node."""
    return {
        uid: entry
        for uid, entry in checkpoint.items()
        if any(habit.survives_reboot(entry) for habit in habits)
    }


def restarted(
    habits: Habits, checkpoint: Checkpoint, claims: Mapping[str, Object]
) -> dict[str, Checkpointed]:
    """The checkpoint after a new start of the driver.

    Args:
        claims: the claims as the API server has them, by UID; those that are gone are missing.
    """
    return {
        uid: entry
        for uid, entry in checkpoint.items()
        if all(habit.restores(claims.get(uid, {})) for habit in habits)
    }


def has(habits: Habits, devices: Sequence[Object]) -> list[Object]:
    """The devices of a node that the driver knows."""
    offered = list(devices)
    for habit in habits:
        offered = habit.has(offered)
    return offered


def shows(habits: Habits, devices: Sequence[Object], used: Collection[str]) -> list[Object]:
    """The devices that the driver publishes for a node. ``used``: the names of those in use."""
    offered = has(habits, devices)
    for habit in habits:
        offered = habit.shows(offered, used)
    return offered


def _refusal(habits: Habits, verb: str, situation: Situation) -> str:
    return next(filter(None, (habit.refuses(verb, situation) for habit in habits)), "")
