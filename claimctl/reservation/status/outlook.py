"""What a decision found out about a claim, for statuses and conditions to tell."""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.reservation.decision import Blocker
from claimctl.reservation.pods import Consumers
from claimctl.reservation.reasons import Reason, ReleaseStep
from claimctl.reservation.reserved_for.consistency import ListPlan


@dataclass(frozen=True, slots=True)
class Outlook:
    """The claim as this decision sees it."""

    consumers: Consumers
    plan: ListPlan | None = None
    release: Reason | None = None
    """Under way or waiting for ``blockers``."""
    step: ReleaseStep | None = None
    """How far the release has come; None while something stands against it."""
    blockers: tuple[Blocker, ...] = ()
    finished_release: str | None = None
    """Why the release began that has just been brought to its end.

    Another version may have begun it, for a reason that is unknown here."""
    yielded: bool = False
    fighting: bool = False
