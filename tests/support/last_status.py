"""Checks that no decision follows from a status that is the last write.

The controller does not look at the claim again after such a write.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec.structs import replace as replace_fields

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import Decision, WriteStatus
from claimctl.reservation.facts.snapshot import Held, Snapshot


def checked(snapshot: Snapshot) -> Decision:
    """The decision; AssertionError if a decision would follow from a status that is the last."""
    decision = decide(snapshot)
    write = decision.write
    if isinstance(write, WriteStatus) and write.last:
        held = tuple(_with(reservation, write) for reservation in snapshot.reservations)
        following = decide(replace(snapshot, reservations=held))
        left = (following.write, following.needs, following.after)
        assert left == (None, (), None), f"left to do after {write}: {left}"
    return decision


def _with(held: Held, write: WriteStatus) -> Held:
    if held.name != write.reservation.metadata.name:
        return held
    return replace(held, reservation=replace_fields(held.reservation, status=write.status))
