"""Listing ahead: what is searched, and the rules that are left out on purpose."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from claimctl.reservation.assessment import assess
from claimctl.reservation.assessment.assess import Assessment
from claimctl.reservation.facts.memory import Arrivals
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.release import protocol as release
from claimctl.reservation.reserved_for import listing_ahead
from claimctl.reservation.reserved_for.consistency import DesiredHolds
from claimctl.reservation.users import blockers as verdict
from claimctl.wire.pods import Pod
from labs.model.dialects import Hold
from labs.model.mutation import Mutation, without
from labs.model.scenarios import (
    CORDONED,
    CORDONED_TWICE,
    DELETED_LISTED,
    LEFT_LISTED,
    TWO_CLAIMCTLS,
    TWO_PODS,
    Scenario,
)
from labs.model.server import Bounds

AHEAD = Hold(ahead=True)
OLD_AHEAD = Hold(ahead=True, kcm_keeps_unknown=False)
FAILING = Bounds(
    pods=1,
    crashes=1,
    actions=2,
    lag=1,
    cache_lag=1,
    kinds=frozenset({"fail", "late KCM", "end", "withdraw", "force"}),
)
"""Entries of pods that live are taken out by the scheduler and by KCM."""
TWO_HELD = replace(TWO_PODS, held=True, lag=1)
FINISHING = replace(TWO_HELD, finish=True, kinds=frozenset({"withdraw"}))
"""The first pod may finish while the second waits."""

AHEAD_SCENARIOS = (
    Scenario("a pod, a crash", AHEAD, Bounds(pods=1, crashes=1, actions=1)),
    Scenario("a pod whose entry is taken out", AHEAD, FAILING),
    Scenario("a claim deleted with a pod that is listed", AHEAD, DELETED_LISTED),
    Scenario("devices out of reach", AHEAD, replace(CORDONED, actions=2)),
    Scenario("two pods, devices out of reach", AHEAD, CORDONED_TWICE),
    Scenario("two pods that are left listed", AHEAD, LEFT_LISTED),
    Scenario("two pods, one of which finishes", AHEAD, FINISHING),
    Scenario(
        "two pods of a held claim",
        AHEAD,
        replace(TWO_HELD, kinds=frozenset({"end", "fail", "withdraw"})),
    ),
    Scenario("two claimctls", AHEAD, replace(TWO_CLAIMCTLS, kinds=frozenset({"withdraw", "fail"}))),
    Scenario(
        "two pods of a held claim",
        OLD_AHEAD,
        replace(TWO_HELD, kinds=frozenset({"end", "force"})),
    ),
)

_was_never_listed = listing_ahead._was_never_listed
_holds_while_waiting = assess.holds_while_waiting


def _listed_again(snapshot: Snapshot, pod: Pod, owners: Collection[str]) -> bool:
    """Whether an entry was taken out does not matter."""
    seen = snapshot.memory.arrivals
    forgetful = Arrivals(seen.claim_age, seen.pod_age)
    memory = replace(snapshot.memory, arrivals=forgetful)
    return _was_never_listed(replace(snapshot, memory=memory), pod, owners)


def _lists_while_waiting(assessment: Assessment) -> DesiredHolds:
    wishes = _holds_while_waiting(assessment)
    owners = {
        uid: retention.held.workload.pod_owners
        for uid in wishes.keep
        for retention in assessment.retentions
    }
    return replace(wishes, pod_owners=owners)


def _bound_only(snapshot: Snapshot, reason: Reason, consumers: object) -> verdict.Users:
    return verdict.Users(list(snapshot.consumers.bound.values()), [], [])


ENTRIES_GO = without(
    release,
    "next_step",
    "[entry for entry in snapshot.references if not _may_go(entry, own, gone)]",
    "[]",
)
"""Whatever the LIST shows of the pods of the list."""

AHEAD_MUTATIONS = (
    Mutation(
        "list a pod again whose entry was taken out",
        AHEAD,
        replace(FAILING, crashes=0),
        ((listing_ahead, "_was_never_listed", _listed_again),),
    ),
    Mutation(
        "list a pod ahead while the claim is given up",
        AHEAD,
        FINISHING,
        ((assess, "holds_while_waiting", _lists_while_waiting),),
    ),
    Mutation(
        "count pods listed ahead as harmless",
        AHEAD,
        Bounds(pods=1, crashes=0, actions=1, kinds=frozenset({"end", "withdraw"})),
        (
            (verdict, "users_among", _bound_only),
            ENTRIES_GO,
        ),
    ),
    Mutation(
        "count pods whose entries were taken out as harmless",
        AHEAD,
        FINISHING,
        ((verdict, "binding_left", lambda *_: 0.0),),
    ),
)
