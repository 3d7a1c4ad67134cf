"""What a decision found out about a claim, for statuses and conditions to tell."""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.reservation.consistency import ListPlan
from claimctl.reservation.consumers import Consumers
from claimctl.reservation.decision import Blocker
from claimctl.reservation.reasons import Reason, ReleaseStep


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
    finished_release: Reason | None = None
    """The release that has just been brought to its end."""
    yielded: bool = False
    fighting: bool = False
