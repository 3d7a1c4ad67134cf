"""Late holds: what is searched, and the rules that are left out on purpose.

The driver wants one pod in the list. So the allocation is the hold, and an entry of claimctl's
stands in the list only while the last pod leaves. Pods are deleted here, and end some time after
that: a kubelet may take as long as it likes.
"""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation import decide
from claimctl.reservation.assessment import assess
from claimctl.reservation.assessment.assess import Assessment
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.reserved_for import late, listing_ahead
from claimctl.reservation.reserved_for.consistency import DesiredHolds
from labs.model.dialects import Hold
from labs.model.mutation import Mutation, without
from labs.model.scenarios import LEFT_LISTED, TWO_CLAIMCTLS, Scenario
from labs.model.server import Bounds
from labs.model.traps import TAINTED

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
VANISHED = replace(
    SURGE,
    actions=3,
    lag=0,
    cache_lag=0,
    kinds=frozenset({"delete pod", "close", "force"}),
)
"""The last pod leaves, and vanishes while the claim is given up for the next one."""
EVICTED = replace(TAINTED, actions=2, kinds=frozenset({"taint", "delete pod"}))
CLOSED = replace(NEXT, kinds=frozenset({"delete pod", "close", "open"}))
LEFT = replace(
    LEFT_LISTED, lag=1, kinds=frozenset({"restart scheduler", "cordon", "force"}), graceful=True
)


def _next(*kinds: str) -> Bounds:
    return replace(NEXT, kinds=frozenset({"delete pod", *kinds}))


def _both(name: str, bounds: Bounds) -> tuple[Scenario, Scenario]:
    """Beside KCM from 1.36 on, and up to 1.35."""
    return Scenario(name, LATE, bounds), Scenario(name, OLD_LATE, bounds)


LATE_SCENARIOS = (
    *_both("a pod, a crash", ONE),
    *_both("a pod, a gap", replace(ONE, crashes=0, gaps=1, kinds=frozenset({"delete pod", "end"}))),
    *_both("one pod after another, late views", replace(NEXT, cache_lag=1)),
    *_both("a surge", SURGE),
    *_both("a surge on a closed node, a force-deletion", VANISHED),
    *_both("scaled to zero and back", SCALED),
    *_both("one pod after another, on a closed node", CLOSED),
    *_both("one pod after another, a force-deletion", _next("force")),
    *_both("one pod after another, the reservation is deleted", _next("withdraw")),
    *_both("one pod after another, the claim is deleted", _next("delete claim")),
    *_both("one pod after another, the workload ends", replace(_next("end"), lag=0)),
    *_both(
        "the workload is made again", replace(NEXT, lag=0, kinds=frozenset({"delete", "recreate"}))
    ),
    *_both("pods that finish, too", replace(NEXT, actions=1, finish=True)),
    Scenario("a device that evicts its pods", LATE, EVICTED),
    *_both("two pods that schedulers left listed", LEFT_LISTED),
    Scenario(
        "two claimctls",
        LATE,
        replace(
            TWO_CLAIMCTLS, held=True, graceful=True, kinds=frozenset({"withdraw", "delete pod"})
        ),
    ),
)


_may_stand = late.may_stand
_holds_while_held = assess.holds_while_held


def _stands(*_: object, **__: object) -> bool:
    return True


def _stays(snapshot: Snapshot, own: frozenset[str], *, released: bool) -> bool:
    listed = not own.isdisjoint(snapshot.listed_uids)
    return listed or _may_stand(snapshot, own, released=released)


def _leaves_entries(facts: Assessment) -> DesiredHolds:
    return replace(_holds_while_held(facts), late_hold_leaves=False)


def _no(*_: object) -> bool:
    return False


def _no_time(*_: object) -> float:
    return 0.0


USERS = "not starting and all(map(leaves_its_device, users))"
WHILE_ANOTHER_WAITS = without(late, "may_stand", "uid in listed", "False")
LATE_MUTATIONS = (
    *(
        Mutation(name, dialect, NEXT, (patch,))
        for dialect in (LATE, OLD_LATE)
        for name, patch in (
            ("add a hold beside a starting pod", (assess, "may_stand", _stands)),
            ("keep the hold beside the next pod", (assess, "may_stand", _stays)),
            (
                "keep the hold alone after the last pod",
                without(
                    late, "may_stand", "bool(pods.tombstones or present_ghosts(snapshot))", "True"
                ),
            ),
            (
                "add no hold beside the last pod that leaves",
                without(late, "may_stand", USERS, "False"),
            ),
            (
                "never write an empty list",
                without(
                    decide,
                    "write_list",
                    "plan.reserved_for or plan.may_be_empty",
                    "plan.reserved_for",
                ),
            ),
            (
                "take out the hold, and not the pod that has ended",
                (assess, "holds_while_held", _leaves_entries),
            ),
        )
    ),
    Mutation(
        "add a hold beside a pod that the cache lacks",
        LATE,
        SURGE,
        ((late, "_lists_unseen_pod", _no),),
    ),
    Mutation("add a hold beside a listed pod that waits", LATE, SURGE, (WHILE_ANOTHER_WAITS,)),
    Mutation(
        "keep the hold beside a starting pod of a claim that is being deleted",
        LATE,
        _next("delete claim"),
        (
            without(
                assess,
                "holds_step_aside",
                "snapshot.late if in_use or not snapshot.deleting else None",
                "None if snapshot.deleting else snapshot.late",
            ),
        ),
    ),
    Mutation(
        "let several pods that schedulers left listed wait for each other",
        LATE,
        LEFT_LISTED,
        ((late, "_lists_only_left", _no),),
    ),
    Mutation(
        "leave a release to KCM that waits for a pod that vanished",
        LATE,
        VANISHED,
        ((late, "_is_unused", _no),),
    ),
    Mutation(
        "take the hold out while a pod whose entry was taken out may be bound",
        LATE,
        LEFT,
        ((decide, "longest_binding_left", _no_time),),
    ),
    Mutation(
        "list pods ahead that are to be alone",
        Hold(late=True, ahead=True),
        SURGE,
        (
            without(
                listing_ahead,
                "pods_to_list",
                "snapshot.until_in_vain == 0 or snapshot.late is not None",
                "snapshot.until_in_vain == 0",
            ),
        ),
    ),
)
