"""The settings of a run that the policy file does not have. All times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.kube.retry import Backoff

_RETRY = Backoff(first=2.0, cap=30.0)
STALE_SECONDS = 600.0
"""An older plan is refused."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a plan is executed.

    Attributes:
        deadline: after this time no further eviction begins; refused ones are given up.
        landing: a replacement without a node counts as pending after this time. Its workload gets
            no further move in this run.
        poll: the time between two looks at replacements and taints.
        max_unavailable: the most moves of one workload that are under way.
        grace_period: for the containers of evicted pods; None means as the pods say.
        retry: the pauses after an eviction that was refused.
    """

    deadline: float = 300.0
    landing: float = 60.0
    poll: float = 2.0
    max_unavailable: int = 1
    grace_period: int | None = None
    retry: Backoff = _RETRY
