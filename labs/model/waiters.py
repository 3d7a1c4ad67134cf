"""Pods that wait for binding conditions: what is searched, and the rules left out on purpose.

While a scheduler waits for such a condition (PreBind), it looks neither at the list of the claim
nor at which devices it has. The wait is longer than claimctl's binding time. A pod that was
Unschedulable before stays so in its status; from Kubernetes 1.35 on, its status names the node.
"""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.users import blockers as verdict
from labs.model.dialects import Conditions, Grouped, Hold
from labs.model.mutation import Mutation, without
from labs.model.scenarios import Scenario
from labs.model.server import Bounds

WITHDRAWN = Bounds(
    pods=1,
    crashes=1,
    actions=1,
    lag=1,
    cache_lag=1,
    held=True,
    idle=True,
    finish=False,
    kinds=frozenset({"withdraw"}),
)
REFUSED = replace(WITHDRAWN, crashes=0, actions=2, kinds=frozenset({"refuse", "ask"}))
"""The pod was Unschedulable once, and then the devices are to be given up."""

WAITER_SCENARIOS = tuple(
    Scenario(f"{name}, a pod waits for conditions of {dialect.conditions}", dialect, bounds)
    for name, bounds, dialects in (
        (
            "withdrawn",
            WITHDRAWN,
            (
                Hold(ahead=True, conditions=Conditions.OTHER),
                Hold(ahead=True, conditions=Conditions.OWN),
                Grouped(conditions=Conditions.OWN),
            ),
        ),
        (
            "asked to give the devices up",
            REFUSED,
            (Hold(conditions=Conditions.OTHER), Grouped(conditions=Conditions.OWN)),
        ),
        (
            "asked to give the devices up, the node is named",
            replace(REFUSED, nominates=True),
            (Hold(conditions=Conditions.OTHER), Hold(ahead=True, conditions=Conditions.OTHER)),
        ),
    )
    for dialect in dialects
)


def _no(*_: object) -> bool:
    return False


ANYBODYS = without(
    verdict,
    "entries_to_take_out",
    "consumers.removable & _yielding(reason, consumers)",
    "snapshot.listed_uids & _yielding(reason, consumers)",
)
"""Entries of schedulers, too."""


WAITER_MUTATIONS = (
    *(
        Mutation(
            "wait no longer for a pod that waits for binding conditions",
            dialect,
            replace(WITHDRAWN, crashes=0),
            ((verdict, "_may_wait_for_devices", _no),),
        )
        for dialect in (
            Hold(ahead=True, conditions=Conditions.OTHER),
            Hold(ahead=True, conditions=Conditions.OWN),
            Grouped(conditions=Conditions.OWN),
        )
    ),
    Mutation(
        "take out an entry that a scheduler wrote",
        Hold(conditions=Conditions.OTHER),
        REFUSED,
        (ANYBODYS,),
    ),
)
