"""The result of a reconcile: done, or requeue after some time. Errors are raised instead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing to do until something changes."""


@dataclass(frozen=True, slots=True)
class After:
    """Reconcile again after so many seconds, even if nothing changes."""

    seconds: float


Outcome = Done | After
DONE = Done()
