"""Errors in the withdrawal beside a running PodGroup: the search has to find each of them."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.assessment import assess
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.users import withdrawal
from claimctl.wire.claims import Reference
from labs.model.dialects import Grouped
from labs.model.mutation import Mutation
from labs.model.scenarios import LEFT_RUNNING


def _any_group(snapshot: Snapshot, _: object) -> tuple[Reference, ...]:
    return withdrawal.present_groups(snapshot)


def _no(_: Snapshot) -> bool:
    return False


SMALL = replace(LEFT_RUNNING, crashes=0)

WITHDRAWALS = (
    Mutation(
        "leave a claim to a group of which no pod is bound",
        Grouped(),
        SMALL,
        ((withdrawal, "running_groups", _any_group),),
    ),
    Mutation(
        "leave a claim to a group whose pods were only in the cache",
        Grouped(),
        replace(SMALL, live_lists=False),
    ),
    Mutation(
        "add a hold again that has left the claim to its group",
        Grouped(),
        replace(SMALL, processes=2, finish=False),
        ((assess, "hold_has_left", _no),),
    ),
)
