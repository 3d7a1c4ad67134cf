"""What a reconcile can come to. An error is an exception, so it cannot be said together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing to do until something changes."""


@dataclass(frozen=True, slots=True)
class After:
    """Look again after so many seconds, although nothing may have changed."""

    seconds: float


Outcome = Done | After
DONE = Done()
