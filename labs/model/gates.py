"""Clusters that serve PodGroups: what a claim needs follows from its own list, and not from that.

Where no pod has a group, the rules of ``hold`` apply. Where a group was listed once, its pods may
still be bound by schedulers that saw it, although the list has no group any more.
"""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.facts.snapshot import Snapshot
from labs.model.dialects import Grouped, Hold
from labs.model.mutation import Mutation
from labs.model.scenarios import CORDONED, GAPPED, TWO_PODS_HOLD, Scenario
from labs.model.server import Bounds

UNUSED = Hold(gates=True, ahead=True)
ENDING = Bounds(
    pods=1,
    crashes=0,
    actions=1,
    lag=1,
    cache_lag=1,
    held=True,
    idle=True,
    finish=False,
    kinds=frozenset({"end"}),
)
"""A pod comes when the workload has ended, and its scheduler has seen the group in the list."""
MIXED = replace(
    ENDING,
    pods=2,
    cache_lag=0,
    actions=2,
    post_filter=False,
    kinds=frozenset({"end", "other"}),
)

GATE_SCENARIOS = (
    Scenario(
        "no pod has a group, two pods",
        UNUSED,
        replace(TWO_PODS_HOLD, held=True, idle=True, kinds=frozenset({"end"})),
    ),
    Scenario("no pod has a group, a pod, a gap", UNUSED, replace(GAPPED, gaps=1)),
    Scenario("no pod has a group, devices out of reach", UNUSED, replace(CORDONED, actions=2)),
    Scenario("a workload ends, and a pod comes", Grouped(), ENDING),
    Scenario("a workload ends, and another pod has no group", Grouped(others=1), MIXED),
)


GATE_MUTATIONS = (
    Mutation(
        "forget that a group was listed",
        Grouped(),
        ENDING,
        ((Snapshot, "shares_by_group", False),),
    ),
)
