"""Whose turn it is: a group waits for those before it that touch the same nodes."""

from __future__ import annotations

from claimctl.reschedule.run.groups import MoveGroup
from claimctl.reschedule.run.landings import Landings
from claimctl.reschedule.run.steps import Result


def has_its_turn(group: MoveGroup, landings: Landings) -> bool:
    """Whether the groups before this one have landed, and their room is free."""
    while group.before:
        earlier = group.before[-1]
        if not _has_landed(earlier, landings):
            return False
        if group.waits and landings.is_settling(earlier.moves):
            return False
        group.before.pop()
    while group.room:
        if not _has_landed(group.room[-1], landings):
            return False
        evicted = [step for step in group.room[-1].steps if step.result is Result.EVICTED]
        if not all(landings.has_ended(step.move.pod) for step in evicted):
            return False
        group.room.pop()
    return True


def _has_landed(group: MoveGroup, landings: Landings) -> bool:
    return not any(
        step.result is Result.PLANNED or landings.is_under_way(step.move.pod.uid)
        for step in group.steps
    )
