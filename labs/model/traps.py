"""Holds and entries that keep pods out: what is searched, and the rules left out on purpose.

A pod finds no node with the claim's devices, for a reason that claimctl does not see: the node is
closed or full, the devices have failed, or the pod needs another node (so does the pod of another
owner here). The scheduler frees a claim for such a pod that lists nobody else. So no hold, and no
entry that claimctl listed ahead, may keep the claim for ever while nobody uses it.
"""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation import decide
from claimctl.reservation.assessment import assess
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.release import objects as release_objects
from claimctl.reservation.reserved_for.listing_ahead import GivenUp
from claimctl.reservation.users import blockers as verdict
from labs.model.dialects import Grouped, Hold, Native
from labs.model.mutation import Mutation, without
from labs.model.scenarios import LEFT_LISTED, Scenario
from labs.model.server import Bounds

SHARED = Bounds(
    pods=2,
    crashes=0,
    actions=2,
    lag=1,
    cache_lag=0,
    held=True,
    finish=False,
    kinds=frozenset({"other", "end"}),
)
"""A pod of another owner comes, and the workload ends."""
IDLE = replace(SHARED, kinds=frozenset({"other", "scale"}))
LEAVING = Bounds(
    pods=2,
    crashes=0,
    actions=2,
    lag=1,
    cache_lag=0,
    held=True,
    kinds=frozenset({"cordon", "withdraw"}),
)
LEAVING_IDLE = replace(LEAVING, actions=1, idle=True, kinds=frozenset({"withdraw"}))
"""Two pods come while the reservation is withdrawn: one is bound late, the other ends early."""
"""Pods wait for a closed node while the reservation is withdrawn."""

TAINTED = Bounds(
    pods=1,
    crashes=0,
    actions=1,
    lag=1,
    cache_lag=0,
    held=True,
    finish=False,
    kinds=frozenset({"taint"}),
)
"""Each pod is evicted, and another takes its place."""

TRAP_SCENARIOS = (
    *(
        Scenario("a workload that ends, and a pod that needs another node", dialect, SHARED)
        for dialect in (
            Hold(others=1),
            Hold(ahead=True, others=1),
            Native(others=1),
            Grouped(others=1),
        )
    ),
    *(
        Scenario("a device that evicts its pods", dialect, TAINTED)
        for dialect in (Hold(), Hold(ahead=True), Grouped())
    ),
    Scenario("an idle workload, and a pod that needs another node", Hold(others=1), IDLE),
    Scenario("two pods, a withdrawal from a closed node", Hold(ahead=True), LEAVING),
    Scenario("two pods, a withdrawal from an idle claim", Hold(ahead=True), LEAVING_IDLE),
)


def _no(*_: object) -> bool:
    return False


def _nothing(*_: object) -> GivenUp:
    return GivenUp()


NOBODY_YIELDS = without(verdict, "_yielding", "frozenset(consumers.stuck)", "frozenset()")
STAYS = without(
    assess,
    "_leaves_to_pods",
    "bool(facts.blockers) and only_listed and not facts.snapshot.consumers.left_listed",
    "False",
)
NONE_AHEAD = (
    without(assess, "_has_lost_its_hold", "snapshot.consumers.removable", "()"),
    without(assess, "_is_left_to_kcm", "snapshot.consumers.removable", "()"),
    without(
        release_objects,
        "is_finished_with_claim",
        "snapshot.consumers.removable",
        "frozenset()",
    ),
)


def _no_time(*_: object) -> float:
    return 0.0


TRAP_MUTATIONS = (
    *(
        Mutation(
            "count pods that a hold keeps out",
            dialect,
            bounds,
            (NOBODY_YIELDS, (Snapshot, "stuck_since", None)),
        )
        for dialect, bounds in (
            (Hold(others=1), SHARED),
            (Native(others=1), SHARED),
            (Grouped(others=1), SHARED),
            (Hold(others=1), IDLE),
        )
    ),
    *(
        Mutation(
            "never give up devices that no pod can use",
            dialect,
            replace(TAINTED, idle=True, kinds=frozenset({"cordon"})),
            ((Snapshot, "stuck_since", None),),
        )
        for dialect in (Hold(), Native(), Grouped())
    ),
    Mutation(
        "stay beside a pod that a scheduler left listed",
        Hold(),
        LEFT_LISTED,
        (STAYS,),
    ),
    Mutation(
        "let several pods that schedulers left listed wait for each other",
        Hold(),
        LEFT_LISTED,
        ((Consumers, "left_listed", frozenset()),),
    ),
    *(
        Mutation(
            "hold a device that evicts its pods",
            dialect,
            TAINTED,
            ((Snapshot, "loss", None),),
        )
        for dialect in (Hold(), Hold(ahead=True), Grouped())
    ),
    Mutation(
        "leave entries listed ahead behind",
        Hold(ahead=True),
        LEAVING,
        ((assess, "GivenUp", _nothing), *NONE_AHEAD),
    ),
    Mutation(
        "leave before pods are bound whose entries were taken out",
        Hold(ahead=True),
        LEAVING_IDLE,
        ((assess, "longest_binding_left", _no_time),),
    ),
    Mutation(
        "leave pods alone of which others may be bound",
        Hold(ahead=True),
        LEAVING_IDLE,
        ((decide, "_leaves_pods_alone", _no),),
    ),
)
