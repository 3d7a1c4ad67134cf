"""Plays the schedules of torture while ``claimctl reschedule`` runs beside them, for a fixed time.

The runs are killed at times, and nodes refuse pods. Exit code 1 with the seed and the history of
the first schedule that broke a promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from claimctl_reschedule_labs.torture.rescheduling import rescheduling
from labs.runs import report, spread
from labs.torture.explorer import explore
from labs.torture.lab import clock, flags, seeds_of


def main(arguments: Sequence[str]) -> int:
    given = flags("reschedule-torture", __doc__).parse_args(arguments)
    play = partial(explore, beside=rescheduling)
    tally = spread(play, seeds_of(given), given.workers, clock(given.budget))
    return report(tally, ("schedules run", f"{tally.runs} from SEED={given.seed}"))
