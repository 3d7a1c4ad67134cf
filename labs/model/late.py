"""Late holds: what is searched, and the rules that are left out on purpose.

The driver wants one pod in the list. So the allocation is the hold, and an entry of claimctl's
stands in the list only while the last pod leaves. Pods are deleted here, and end some time after
that: a kubelet may take as long as it likes.
"""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation import decide
from claimctl.reservation.assessment import assess
from claimctl.reservation.reserved_for import consistency, late, listing_ahead
from labs.model.dialects import Dialect, Hold
from labs.model.mutation import Mutation, Patch, without
from labs.model.scenarios import LEFT_LISTED, TWO_CLAIMCTLS, Scenario
from labs.model.server import Bounds

LATE, OLD_LATE = Hold(late=True), Hold(late=True, kcm_keeps_unknown=False)
ONE = Bounds(
    pods=1,
    crashes=1,
    actions=1,
    lag=1,
    cache_lag=1,
    finish=False,
    graceful=True,
    kinds=frozenset({"delete pod", "force", "end", "withdraw", "delete claim", "ask"}),
)
NEXT = Bounds(
    pods=2,
    crashes=0,
    actions=2,
    lag=1,
    cache_lag=0,
    held=True,
    finish=False,
    graceful=True,
    one_by_one=True,
    kinds=frozenset({"delete pod"}),
)
"""The workload makes the next pod when the one before has ended (Recreate, a StatefulSet)."""
SURGE = replace(NEXT, one_by_one=False, cache_lag=1)
"""It makes the next pod before that."""
SCALED = replace(NEXT, lag=0, kinds=frozenset({"scale"}))
CLOSED = replace(NEXT, kinds=frozenset({"delete pod", "close", "open"}))


def _next(*kinds: str, **more: int) -> Bounds:
    return replace(NEXT, kinds=frozenset({"delete pod", *kinds}), **more)


def _both(name: str, bounds: Bounds) -> tuple[Scenario, Scenario]:
    """Beside KCM from 1.36 on, and up to 1.35."""
    return Scenario(name, LATE, bounds), Scenario(name, OLD_LATE, bounds)


LATE_SCENARIOS = (
    *_both("a pod, a crash", ONE),
    *_both("a pod, a gap", replace(ONE, crashes=0, gaps=1, kinds=frozenset({"delete pod", "end"}))),
    *_both("one pod after another, late views", replace(NEXT, actions=1, cache_lag=1)),
    *_both("a surge", SURGE),
    *_both("scaled to zero and back", SCALED),
    *_both("one pod after another, on a closed node", CLOSED),
    *_both("one pod after another, a force-deletion", _next("force")),
    *_both("one pod after another, the reservation is deleted", _next("withdraw")),
    *_both("one pod after another, the claim is deleted", _next("delete claim")),
    *_both("one pod after another, the workload ends", _next("end", lag=0)),
    *_both(
        "the workload is made again", replace(NEXT, lag=0, kinds=frozenset({"delete", "recreate"}))
    ),
    *_both("pods that finish, too", _next(actions=1, finish=True)),
    *_both("two pods that schedulers left listed", LEFT_LISTED),
    Scenario(
        "two claimctls",
        LATE,
        replace(
            TWO_CLAIMCTLS, held=True, graceful=True, kinds=frozenset({"withdraw", "delete pod"})
        ),
    ),
)
