"""Requests to give a claim's devices up: what is searched, and the rules left out on purpose."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation import decide
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.users import blockers as verdict
from labs.model.dialects import Grouped, Hold, Native
from labs.model.mutation import Mutation
from labs.model.scenarios import Scenario
from labs.model.server import Bounds
from labs.model.windows import uncounted

HOLD, AHEAD, NATIVE, GROUPED = Hold(), Hold(ahead=True), Native(), Grouped()
ASKED = Bounds(
    pods=2, crashes=0, actions=1, lag=1, cache_lag=1, held=True, kinds=frozenset({"ask"})
)
ONE_POD = replace(ASKED, pods=1, crashes=1, actions=2, kinds=frozenset({"ask", "scale"}))
CLOSED = replace(
    ASKED, cache_lag=0, actions=3, finish=False, kinds=frozenset({"ask", "cordon", "force"})
)
TWICE = replace(ONE_POD, processes=2, crashes=0, actions=1, kinds=frozenset({"ask"}))
ANEW = replace(ASKED, crashes=1, lag=0, cache_lag=0)
"""Another pod may have the claim allocated anew while no claimctl runs."""

REQUEST_SCENARIOS = (
    *(
        Scenario("asked to give the devices up", dialect, ASKED)
        for dialect in (AHEAD, NATIVE, GROUPED)
    ),
    *(
        Scenario("asked to give the devices up, a crash", dialect, ONE_POD)
        for dialect in (HOLD, AHEAD, NATIVE, GROUPED)
    ),
    Scenario("asked to give the devices up of a closed node", AHEAD, CLOSED),
    Scenario("two claimctls that are asked to give the devices up", HOLD, TWICE),
)


def _no(*_: object) -> bool:
    return False


def _nothing(*_: object) -> None:
    return None


REQUEST_MUTATIONS = (
    *(
        Mutation(
            "ignore pods that may be bound when asked to give the devices up",
            dialect,
            ASKED,
            ((verdict, "users_among", uncounted(Reason.REALLOCATED)),),
        )
        for dialect in (NATIVE, GROUPED)
    ),
    Mutation(
        "leave a request that was met",
        HOLD,
        replace(ONE_POD, crashes=0),
        ((decide, "_ended_request", _nothing),),
    ),
    Mutation(
        "leave a request to the next allocation, after a crash",
        HOLD,
        ANEW,
        ((decide, "has_begun", _no),),
    ),
)
