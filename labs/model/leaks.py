"""Protocols that keep every promise of safety and do not get there: liveness has to find them."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation import decide
from claimctl.reservation.assessment import assess
from claimctl.reservation.assessment.assess import holds_while_waiting
from claimctl.reservation.facts.decision import Step
from claimctl.reservation.pod_groups import case as grouping
from claimctl.reservation.release import objects as release_objects
from claimctl.reservation.release import protocol as release
from labs.model.dialects import Grouped, Hold, Native
from labs.model.mutation import Mutation, without
from labs.model.server import Bounds


def _no_step(*_: object, **__: object) -> Step:
    return Step()


def _unchanged(*_: object) -> None:
    return None


NEVER_SETTLED = without(
    release,
    "next_step",
    """
    if settle and (left := snapshot.settling_left) > 0:
        text = "waits until every scheduler sees this version of the claim"
        return Step(blockers=(Blocker(Reason.SETTLING, text, left),))
    """,
    "if settle: return Step()",
)


NEVER_MADE = without(
    grouping, "decide_group", "if not claims or case.listed: return NOTHING", "return NOTHING"
)
STILL_GUARDED = without(
    grouping,
    "decide_group",
    "if not has_finalizer or not over or case.in_use_live: return NOTHING",
    "return NOTHING",
)

SMALL = Bounds(pods=1, crashes=0, actions=1, lag=1, cache_lag=1)
ENDING = replace(SMALL, finish=False, kinds=frozenset({"end"}))

LEAKS = (
    Mutation(
        "give up after a conflict",
        Hold(),
        replace(ENDING, yield_reason=True),
    ),
    Mutation("fence and never deallocate", Native(), ENDING, (NEVER_SETTLED,)),
    Mutation(
        "never take the scheduler's finalizer off",
        Hold(),
        ENDING,
        ((decide, "finalizer_step", _no_step),),
    ),
    Mutation(
        "never take the reservation's finalizer off",
        Hold(),
        replace(SMALL, kinds=frozenset({"withdraw"})),
        ((release_objects, "remove_reservation_finalizers", _unchanged),),
    ),
    Mutation(
        "never take the group's finalizer off",
        Grouped(),
        ENDING,
        (STILL_GUARDED,),
    ),
    Mutation("never make the group", Grouped(), ENDING, (NEVER_MADE,)),
    Mutation("never hold", Hold(), ENDING, ((assess, "holds_while_held", holds_while_waiting),)),
)
