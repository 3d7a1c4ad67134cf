"""What is searched: small bounds that are searched completely, and what they take for granted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from labs.model.dialects import Grouped, Hold, ModelDialect, Native
from labs.model.server import Bounds

HOLD, OLD_HOLD, NATIVE = Hold(), Hold(kcm_keeps_unknown=False), Native()
GROUPED = Grouped()


@dataclass(frozen=True)
class Scenario:
    """One complete search."""

    name: str
    dialect: ModelDialect
    bounds: Bounds


ONE_POD = Bounds(pods=1, crashes=1, actions=1, lost=1)
BUSY_USER = Bounds(pods=1, crashes=1, actions=2)
TWO_PODS = Bounds(pods=2, crashes=0, actions=1, cache_lag=0, lag=2, finish=False)
TWO_PODS_HOLD = replace(TWO_PODS, lag=1, kinds=frozenset({"end", "force"}))
GAPPED = Bounds(
    pods=1, crashes=0, actions=2, cache_lag=2, gaps=2, kinds=frozenset({"end", "force"})
)
GAPPED_TWO = Bounds(
    pods=2, crashes=0, actions=2, lag=0, cache_lag=1, gaps=1, held=True, kinds=GAPPED.kinds
)
WITHDRAWN = frozenset({"end", "withdraw"})
TWO_CLAIMCTLS = Bounds(
    pods=1, processes=2, crashes=0, actions=1, lag=1, cache_lag=1, finish=False, kinds=WITHDRAWN
)
ONE_GROUPED = Bounds(pods=1, crashes=1, actions=1, lag=1, cache_lag=1)
AGAIN = Bounds(
    pods=1,
    crashes=0,
    actions=2,
    lag=1,
    cache_lag=1,
    finish=False,
    kinds=frozenset({"delete", "recreate"}),
)
TWO_GROUPED = replace(TWO_PODS, lag=1, kinds=frozenset({"end"}))
GROUPED_TWICE = replace(TWO_CLAIMCTLS, held=True, kinds=frozenset({"end", "withdraw", "force"}))
MIXED = Bounds(pods=2, crashes=0, held=True, mixed_schedulers=True, finish=False, cache_lag=1)
CORDONED = Bounds(
    pods=1,
    crashes=1,
    actions=3,
    lag=1,
    cache_lag=1,
    finish=False,
    kinds=frozenset({"cordon", "force", "restart scheduler"}),
)
CORDONED_TWICE = replace(CORDONED, pods=2, crashes=0, actions=1, kinds=frozenset({"cordon"}))
LEFT_LISTED = replace(
    CORDONED,
    pods=2,
    crashes=0,
    cache_lag=0,
    kinds=frozenset({"cordon", "restart scheduler"}),
)
DELETED_LISTED = replace(
    CORDONED, crashes=0, kinds=frozenset({"restart scheduler", "delete claim", "force"})
)
HELD_GROUP = replace(ONE_GROUPED, crashes=0, cache_lag=0)
PROMPT_KCM = replace(HELD_GROUP, prompt_kcm=True, kinds=frozenset({"withdraw"}))
CORDONED_GROUP = replace(
    CORDONED,
    pods=3,
    crashes=0,
    actions=2,
    cache_lag=0,
    held=True,
    kinds=frozenset({"cordon", "force"}),
)
LEFT_RUNNING = Bounds(
    pods=1, crashes=1, actions=1, lag=1, cache_lag=1, held=True, kinds=frozenset({"withdraw"})
)
LEFT_TWO = replace(
    LEFT_RUNNING,
    pods=2,
    crashes=0,
    actions=2,
    cache_lag=0,
    kinds=frozenset({"withdraw", "cordon"}),
)

SCENARIOS = (
    Scenario("a pod, a crash, a lost answer", NATIVE, ONE_POD),
    Scenario("a pod, a crash, a busy user", NATIVE, BUSY_USER),
    Scenario("a pod, a gap", NATIVE, replace(GAPPED, gaps=1)),
    Scenario("two pods", NATIVE, TWO_PODS),
    Scenario("two claimctls and a crash", NATIVE, replace(TWO_CLAIMCTLS, crashes=1, lag=2)),
    Scenario("schedulers with and without the feature", NATIVE, MIXED),
    Scenario("a workload made again", NATIVE, AGAIN),
    Scenario("devices out of reach", NATIVE, CORDONED),
    Scenario("a pod, a crash, a lost answer", HOLD, ONE_POD),
    Scenario("a pod, two gaps", HOLD, GAPPED),
    Scenario("two pods", HOLD, TWO_PODS_HOLD),
    Scenario("two pods of a held claim", HOLD, replace(TWO_PODS, held=True, lag=1)),
    Scenario("two claimctls", HOLD, TWO_CLAIMCTLS),
    Scenario("devices out of reach", HOLD, CORDONED),
    Scenario("two pods, devices out of reach", HOLD, CORDONED_TWICE),
    Scenario("two pods that schedulers left listed", HOLD, LEFT_LISTED),
    Scenario("a claim deleted with a pod that a scheduler left listed", HOLD, DELETED_LISTED),
    Scenario("a pod, a crash, a lost answer", OLD_HOLD, ONE_POD),
    Scenario("devices out of reach", OLD_HOLD, CORDONED),
    Scenario("two pods that schedulers left listed", OLD_HOLD, LEFT_LISTED),
    Scenario("a claim deleted with a pod that a scheduler left listed", OLD_HOLD, DELETED_LISTED),
    Scenario("two pods", OLD_HOLD, TWO_PODS_HOLD),
    Scenario("a pod, a crash", GROUPED, ONE_GROUPED),
    Scenario("a held claim", GROUPED, replace(HELD_GROUP, held=True, finish=False)),
    Scenario("a finished pod and a prompt KCM", GROUPED, PROMPT_KCM),
    Scenario("a workload made again", GROUPED, AGAIN),
    Scenario("two pods", GROUPED, TWO_GROUPED),
    Scenario("two claimctls", GROUPED, GROUPED_TWICE),
    Scenario("devices out of reach", GROUPED, CORDONED),
    Scenario("three pods, devices out of reach", GROUPED, CORDONED_GROUP),
    Scenario("a withdrawal beside a running pod, a crash", GROUPED, LEFT_RUNNING),
    Scenario("a withdrawal beside two pods, devices out of reach", GROUPED, LEFT_TWO),
)

LARGER = (
    Scenario("a pod, two crashes, a busy user", NATIVE, replace(BUSY_USER, crashes=2)),
    Scenario("two pods, a crash", NATIVE, replace(TWO_PODS, crashes=1, cache_lag=1, finish=True)),
    Scenario("three pods", NATIVE, replace(TWO_PODS, pods=3)),
    Scenario(
        "two claimctls and a crash, more actions",
        NATIVE,
        replace(TWO_CLAIMCTLS, crashes=1, lag=2, kinds=WITHDRAWN | {"force", "scale"}),
    ),
    Scenario("a pod, a crash, a busy user", HOLD, BUSY_USER),
    Scenario("two pods, a gap", HOLD, GAPPED_TWO),
    Scenario("two pods, late caches", HOLD, replace(TWO_PODS, cache_lag=1)),
    Scenario("two claimctls and a crash", HOLD, replace(TWO_CLAIMCTLS, crashes=1)),
    Scenario(
        "two claimctls, more actions",
        HOLD,
        replace(TWO_CLAIMCTLS, lag=2, kinds=WITHDRAWN | {"force", "delete"}),
    ),
    Scenario("a pod, a crash, a busy user", OLD_HOLD, BUSY_USER),
    Scenario("two claimctls and a crash", OLD_HOLD, replace(TWO_CLAIMCTLS, crashes=1)),
    Scenario("a pod, a crash, a lost answer", GROUPED, replace(ONE_GROUPED, lost=1)),
    Scenario("a pod, a busy user", GROUPED, replace(BUSY_USER, crashes=0, lag=1, cache_lag=1)),
    Scenario("two pods, any action", GROUPED, replace(TWO_PODS, lag=1)),
    Scenario("two claimctls and a crash", GROUPED, replace(GROUPED_TWICE, crashes=1, cache_lag=0)),
    Scenario(
        "two claimctls and a pod that finishes",
        GROUPED,
        replace(GROUPED_TWICE, finish=True, kinds=WITHDRAWN),
    ),
    Scenario(
        "two claimctls from the beginning",
        GROUPED,
        replace(TWO_CLAIMCTLS, cache_lag=0, kinds=frozenset({"end"})),
    ),
)

WINDOW = Scenario(
    "a scheduler slower than the binding time", NATIVE, replace(TWO_PODS, beyond=True)
)
"""What happens there is known, counted and not followed."""

GAPS = (
    Scenario(
        "a force-deletion that the pod cache shows later than a LIST",
        NATIVE,
        Bounds(pods=1, crashes=0, actions=2, ghosts_seen=False),
    ),
    Scenario(
        "a claimctl that sees a reservation's deletion later than the settle time",
        HOLD,
        replace(TWO_CLAIMCTLS, parting_seen=False),
    ),
    Scenario(
        "a start that lists the claim before the pods",
        NATIVE,
        Bounds(pods=1, crashes=1, actions=2, two_step_start=True),
    ),
    Scenario(
        "a claim deleted while it is fenced",
        NATIVE,
        Bounds(pods=1, crashes=0, actions=2, fence_left_alone=False),
    ),
    Scenario(
        "a scheduler that deallocates a fenced claim, for a pod that finds no node (PostFilter)",
        NATIVE,
        replace(CORDONED_TWICE, cache_lag=0),
    ),
    Scenario(
        "a scheduler that sees a later pod before the end of its group",
        GROUPED,
        replace(AGAIN, actions=1, group_end_seen=False),
    ),
    Scenario(
        "a pod that comes between the last LIST and the end of its group",
        GROUPED,
        replace(AGAIN, actions=1, group_lists_last=False),
    ),
    Scenario(
        "a group deleted by hand while no claim lists it",
        GROUPED,
        replace(AGAIN, actions=1, kinds=frozenset({"delete group"}), group_end_seen=False),
    ),
)
"""What the scenarios take for granted: without it a promise breaks.

Of these claimctl's processes uphold two by themselves: they act on the last LIST only once the pod
cache has reached its version, and list the pods before the claims when they start. The others
nobody can uphold but the cluster and its users."""
