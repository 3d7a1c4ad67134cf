"""Giving way at once: the node is cordoned, and claimctl sees it. What is searched, and the rules
that are left out on purpose.

A pod has been reported Unschedulable just now, so that no timeout is over. The user may open the
node again at any moment: then the scheduler binds the pod while claimctl gives the claim up. A
claim that is allocated while the node is closed goes to another node.
"""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.users import blockers as verdict
from labs.model.ahead import ENTRIES_GO
from labs.model.dialects import Grouped, Hold, Native
from labs.model.mutation import Mutation
from labs.model.scenarios import Scenario
from labs.model.server import Bounds
from tests.support import builders

CLOSED = Bounds(
    pods=1,
    crashes=1,
    actions=3,
    lag=1,
    cache_lag=1,
    finish=False,
    kinds=frozenset({"close", "open", "force", "restart scheduler"}),
)
IDLE = replace(CLOSED, crashes=0, held=True, idle=True)
"""The claim is held, and the next pod comes."""
TWICE = replace(CLOSED, pods=2, crashes=0, actions=2, kinds=frozenset({"close", "open"}))
HELD = replace(TWICE, held=True)
FORCED = replace(HELD, actions=3, kinds=TWICE.kinds | {"force"})
HOLDS = (Hold(), Hold(kcm_keeps_unknown=False), Hold(ahead=True), Hold(late=True))
CLOSED_SCENARIOS = (
    *(Scenario("a closed node", dialect, CLOSED) for dialect in (*HOLDS, Native(), Grouped())),
    *(Scenario("a closed node, two pods", dialect, TWICE) for dialect in HOLDS),
    *(
        Scenario("a closed node, two pods, a force-deletion", dialect, FORCED)
        for dialect in (*HOLDS, Grouped())
    ),
    Scenario("a closed node, two pods", Native(), replace(TWICE, post_filter=False)),
    Scenario("a closed node, three pods", Grouped(), replace(HELD, pods=3)),
)


_users_among = verdict.users_among


def _not_bound(snapshot: Snapshot, reason: Reason, consumers: Consumers) -> verdict.Users:
    return _users_among(snapshot, reason, replace(consumers, bound={}))


def _bound_only(_: Snapshot, __: Reason, consumers: Consumers) -> verdict.Users:
    return verdict.Users(list(consumers.bound.values()), [], [])


def _no_time(*_: object) -> float:
    return 0.0


CLOSED_MUTATIONS = (
    *(
        Mutation(
            "wait for the timeout although the node is missing",
            dialect,
            IDLE,
            ((Snapshot, "node_missing", False),),
        )
        for dialect in (Hold(), Native(), Grouped())
    ),
    *(
        Mutation(
            "give way at once although a pod is bound",
            dialect,
            replace(HELD, actions=1, kinds=frozenset({"close"})),
            (
                (Snapshot, "stuck_since", builders.NOW),
                (verdict, "users_among", _not_bound),
                ENTRIES_GO,
            ),
        )
        for dialect in (Hold(), Native())
    ),
    Mutation(
        "give way at once although a listed pod may be bound",
        Hold(),
        replace(TWICE, actions=1),
        ((verdict, "users_among", _bound_only), ENTRIES_GO),
    ),
    *(
        Mutation(
            "give way at once although a pod that was listed before may be bound",
            dialect,
            IDLE,
            ((verdict, "binding_left", _no_time),),
        )
        for dialect in (Hold(ahead=True), Grouped(), Native())
    ),
)
