"""One cluster in a worker process."""

from __future__ import annotations

from kube_in_process.virtual import run

from claimctl_reschedule_labs.clusters.making import STRATEGIES
from claimctl_reschedule_labs.clusters.playing import Played, played

LIMIT = 1e6
"""Virtual seconds for one cluster."""


def play_seed(seed: int, strategy: str = "") -> Played:
    """Play a seed. An error counts as a finding."""
    try:
        return run(played(seed, strategy), limit=LIMIT)
    except Exception as error:
        name = strategy or STRATEGIES[seed % len(STRATEGIES)]
        return Played(seed, name, other=[repr(error)[:500]])
