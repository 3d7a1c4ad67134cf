"""Restarts with a checkpoint: what is searched, and the rules that are left out on purpose."""

from __future__ import annotations

from dataclasses import replace

from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.users import ghosts
from labs.model import checkpoints, views
from labs.model.dialects import ModelDialect
from labs.model.mutation import Mutation
from labs.model.scenarios import GROUPED, HOLD, NATIVE, OLD_HOLD, Scenario
from labs.model.server import Bounds
from labs.model.state import ModelProcess, World

RESTARTED = Bounds(
    pods=1,
    crashes=1,
    actions=2,
    lag=0,
    cache_lag=1,
    held=True,
    finish=False,
    kinds=frozenset({"end", "force"}),
    checkpoints=True,
)
TWICE = replace(RESTARTED, crashes=2)
RESERVED_ANEW = replace(
    RESTARTED, actions=3, cache_lag=0, kinds=frozenset({"force", "withdraw", "reserve"})
)
TWO_PODS = replace(RESTARTED, pods=2, cache_lag=0)
RESERVED_LATE = replace(
    TWO_PODS, actions=3, reserved=False, kinds=frozenset({"force", "reserve", "end"})
)
REALLOCATED = replace(RESTARTED, held=False, cache_lag=0, kinds=frozenset({"force", "scale"}))
RESTORED = replace(TWO_PODS, actions=1, kinds=frozenset({"end"}), checkpoints=False, restores=True)

CHECKPOINT_SCENARIOS = tuple(
    Scenario(f"a checkpoint, {name}", dialect, bounds)
    for name, bounds, dialects in (
        ("a pod, a crash", RESTARTED, (HOLD, OLD_HOLD, NATIVE, GROUPED)),
        ("a pod, two crashes", TWICE, (HOLD, NATIVE)),
        ("a reservation made anew", RESERVED_ANEW, (HOLD, NATIVE)),
        ("a restored etcd", RESTORED, (HOLD, OLD_HOLD, NATIVE)),
    )
    for dialect in dialects
)
LARGER_CHECKPOINT_SCENARIOS = (
    Scenario("a checkpoint, two pods", HOLD, TWO_PODS),
    Scenario("a checkpoint, a reservation made late", HOLD, RESERVED_LATE),
    Scenario("a checkpoint, a claim allocated anew", HOLD, REALLOCATED),
    Scenario("a checkpoint, a claim allocated anew", NATIVE, REALLOCATED),
    Scenario(
        "a checkpoint, a leader and a standby", HOLD, replace(RESTARTED, processes=2, cache_lag=0)
    ),
)


def _recorded_only(snapshot: Snapshot, recorded: frozenset[str]) -> bool:
    return ghosts.present_ghosts(snapshot).keys() <= recorded


def _seen_only(snapshot: Snapshot, recorded: frozenset[str]) -> bool:
    return next(ghosts.unseen_history(snapshot), None) is None


def _believed(
    mark: ModelProcess, world: World, dialect: ModelDialect, *, claims: bool
) -> ModelProcess:
    """The new list as if nothing could have been missed before it."""
    listed = mark._replace(pods=views.levels(world.pods))
    return views.see_claim(listed, world.claim, dialect) if claims else listed


def _yes(*_: object) -> bool:
    return True


def _as_it_is(process: ModelProcess) -> ModelProcess:
    return process


def _not_current(process: ModelProcess, world: World, dialect: ModelDialect) -> ModelProcess:
    return process


CHECKPOINT_MUTATIONS = tuple(
    Mutation(name, dialect, bounds, (patch,))
    for name, bounds, patch, dialects in (
        (
            "note a checkpoint while blind",
            TWICE,
            (ghosts, "all_on_record", _recorded_only),
            (HOLD, NATIVE),
        ),
        (
            "note a checkpoint before a ghost is on record",
            RESTARTED,
            (ghosts, "all_on_record", _seen_only),
            (HOLD, NATIVE),
        ),
        (
            "note a checkpoint that the caches have not reached",
            RESTARTED,
            (checkpoints, "has_reached", _yes),
            (HOLD, NATIVE),
        ),
        (
            # in hold, the list at the checkpoint has the only pod of these bounds
            "ignore that a watch is refused",
            RESTARTED,
            (checkpoints, "refused", _believed),
            (NATIVE,),
        ),
        (
            "believe a checkpoint although the watch of claims is refused",
            RESTORED,
            (checkpoints, "forgotten", _as_it_is),
            (HOLD, OLD_HOLD),
        ),
        (
            "decide on what was at the checkpoint",
            RESERVED_ANEW,
            (checkpoints, "current", _not_current),
            (HOLD,),
        ),
    )
    for dialect in dialects
)
