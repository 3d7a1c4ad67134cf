"""The protocol broken on purpose, one rule at a time: the search has to find each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from claimctl.reservation import decide
from claimctl.reservation.facts import pods as table
from claimctl.reservation.facts.decision import Blocker, ListLivePods, Step
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_pod
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.pod_groups import case as grouping
from claimctl.reservation.release import objects as release_objects
from claimctl.reservation.release import protocol as release
from claimctl.reservation.users import blockers as verdict
from claimctl.reservation.users import ghosts
from claimctl.wire.claims import Reference
from claimctl.wire.meta import ObjectMeta
from labs.model.ahead import AHEAD_MUTATIONS, ENTRIES_GO
from labs.model.closing import CLOSED_MUTATIONS
from labs.model.dialects import Grouped, Hold, Native
from labs.model.gates import GATE_MUTATIONS
from labs.model.late import LATE_MUTATIONS
from labs.model.leaks import LEAKS
from labs.model.mutation import Mutation, without
from labs.model.requests import REQUEST_MUTATIONS
from labs.model.restarts import CHECKPOINT_MUTATIONS
from labs.model.server import Bounds
from labs.model.traps import TRAP_MUTATIONS
from labs.model.waiters import WAITER_MUTATIONS
from labs.model.windows import REFUSED, WINDOWS
from labs.model.withdrawals import WITHDRAWALS


def _list_only(claim_version: str, vanished: bool = True) -> ListLivePods:
    """A LIST that counts although the pod cache may not have reached its version."""
    return ListLivePods(claim_version, vanished=False)


_proven = release.is_proven


def _proven_beside_pending(snapshot: Snapshot, own: frozenset[str]) -> bool:
    """A pod that the cache shows pending may be bound by now."""
    waiting = Consumers.of(snapshot.pods).pending
    pods = tuple(pod for pod in snapshot.pods if pod.metadata.uid not in waiting)
    return _proven(replace(snapshot, pods=pods), own)


def _dead_pods(snapshot: Snapshot, *_: object) -> tuple[Reference, ...]:
    return tuple(filter(is_pod, snapshot.references))


def _only_bound(snapshot: Snapshot, reason: Reason, consumers: Consumers) -> Iterator[Blocker]:
    if consumers.bound:
        yield Blocker(Reason.CONSUMERS_LEFT, "")


_finalizer_step = release.finalizer_step


def _anybodys_finalizer(snapshot: Snapshot, *, on_record: bool) -> Step:
    del on_record
    ours = replace(snapshot, memory=replace(snapshot.memory, deallocated=True))
    return _finalizer_step(ours, on_record=True)


def _nothing(*_: object) -> Iterator[Blocker]:
    return iter(())


def _own_entry(pod: ObjectMeta) -> Reference:
    return Reference(resource="pods", name=pod.name, uid=pod.uid)


def _yes(*_: object) -> bool:
    return True


UNLISTED = without(
    grouping,
    "decide_group",
    "if case.in_use_live is None: return GroupDecision(lists=True)",
    "",
)
AT_ONCE = without(
    grouping,
    "decide_group",
    """
    if not claims or case.listed:
        return NOTHING
    if left > 0:
        return GroupDecision(after=left)
    """,
    "if not claims: return NOTHING",
)
"""Whoever lists the name, and however lately it was in use."""
UNCOVERED = without(
    release,
    "left_at_fence",
    "left |= {uid: e for uid, e in pods.tombstones.items() if uid not in left}",
    "pass",
)
UNSETTLED = without(release, "next_step", "not fence and (deleting or closed)", "False")
IN_TWO_WRITES = without(
    release,
    "next_step",
    "WriteList(version, (), deallocate=True, reason=reason)",
    "WriteList(version, (), deallocate=not snapshot.references, reason=reason)",
)
SMALL = Bounds(pods=1, crashes=0, actions=1)
ENDING = replace(SMALL, cache_lag=1, finish=False, kinds=frozenset({"end"}))
"""Pods run until the workload has ended."""
LATE = replace(SMALL, lag=1, cache_lag=1, finish=False)

NAMED = (
    Mutation(
        "skip the settle wait",
        Native(),
        replace(SMALL, pods=2, cache_lag=0),
        (UNSETTLED,),
    ),
    Mutation(
        "skip the settle wait",
        Grouped(),
        replace(LATE, pods=2, held=True),
        (UNSETTLED,),
    ),
    Mutation("drop the precondition", Hold(), replace(ENDING, pods=2, forced=frozenset({"list"}))),
    Mutation(
        "drop the precondition", Native(), replace(ENDING, pods=2, forced=frozenset({"list"}))
    ),
    Mutation("drop the precondition", Grouped(), replace(LATE, forced=frozenset({"list"}))),
    Mutation("list the pods from the cache", Native(), replace(SMALL, live_lists=False)),
    Mutation("list the pods from the cache", Hold(), replace(SMALL, live_lists=False)),
    Mutation("list the pods from the cache", Grouped(), replace(LATE, live_lists=False)),
    Mutation(
        "deallocate by a LIST that the pod cache has not reached",
        Native(),
        Bounds(pods=1, crashes=0, actions=2),
        ((release, "ListLivePods", _list_only), (Snapshot, "live", Snapshot.any_live)),
    ),
    Mutation("deallocate in two writes", Hold(), SMALL, (IN_TWO_WRITES,)),
    Mutation(
        "deallocate in two writes",
        Grouped(),
        replace(LATE, finish=True, held=True),
        (IN_TWO_WRITES,),
    ),
    Mutation(
        "fence beside a finished pod",
        Grouped(),
        replace(SMALL, lag=1, cache_lag=1, kinds=frozenset({"withdraw"}), prompt_kcm=True),
        (UNCOVERED,),
    ),
    Mutation(
        "recreate a group under its old name",
        Grouped(),
        replace(LATE, actions=2, kinds=frozenset({"delete", "recreate"})),
        (AT_ONCE,),
    ),
)
"""The breaks that any check of this protocol has to find, in each dialect that has the rule.

In native the list is empty from the fence on: there is nothing to deallocate in two writes.
"""

FURTHER = (
    Mutation(
        "leave dead pods in the list beside the fence",
        Native(),
        replace(ENDING, pods=2, held=True),
        ((release, "left_at_fence", _dead_pods),),
    ),
    Mutation(
        "ignore ghosts",
        Hold(),
        replace(SMALL, actions=2, held=True),
        tuple((module, "ghost_blockers", _nothing) for module in (verdict, ghosts)),
    ),
    Mutation(
        "ignore what happened before the start",
        Native(),
        replace(SMALL, crashes=1, actions=2, held=True),
        tuple((module, "unseen_history", _nothing) for module in (verdict, ghosts)),
    ),
    Mutation(
        "note only the pods of the latest version",
        Hold(),
        replace(
            SMALL,
            pods=2,
            held=True,
            cache_lag=1,
            actions=2,
            kinds=frozenset({"end", "force"}),
            notes=False,
        ),
    ),
    Mutation(
        "deallocate at once beside a pod that is pending in the cache",
        Hold(ahead=True),
        REFUSED,
        ((release, "is_proven", _proven_beside_pending),),
    ),
    Mutation(
        "ignore pods that are pending and listed",
        Hold(),
        SMALL,
        (
            (verdict, "users", _only_bound),
            ENTRIES_GO,
        ),
    ),
    Mutation(
        "take the claim's finalizer without a record",
        Hold(),
        SMALL,
        ((decide, "finalizer_step", _anybodys_finalizer),),
    ),
    Mutation(
        "take the claim's finalizer without its version",
        Hold(),
        replace(ENDING, pods=2, held=True, forced=frozenset({"claim-finalizer"})),
    ),
    Mutation(
        "put finished pods back in place of tombstones",
        Hold(),
        replace(SMALL, actions=0),
        ((table, "tombstone", _own_entry),),
    ),
    Mutation(
        "write tombstones into a list that has changed",
        Hold(),
        replace(SMALL, pods=2, held=True, compared=False),
    ),
    Mutation(
        "let reservations go on a late view of the claim",
        Hold(),
        replace(SMALL, lost=1, live_claims=False),
    ),
    Mutation(
        "let a group go without listing its pods",
        Grouped(),
        LATE,
        (UNLISTED,),
    ),
    Mutation(
        "let reservations go at once",
        Hold(),
        SMALL,
        ((release_objects, "is_finished_with_claim", _yes),),
    ),
    Mutation(
        "part from a reservation that another claimctl may be holding for",
        Hold(),
        replace(ENDING, processes=2, kinds=frozenset({"withdraw"})),
        (
            without(
                release_objects,
                "handle_absent",
                "snapshot.rules.settle_seconds - held.deleting_age",
                "0",
            ),
            without(
                release_objects,
                "remove_reservation_finalizers",
                "max(left, settle - retention.held.deleting_age)",
                "left",
            ),
        ),
    ),
)

MUTATIONS = (
    *NAMED,
    *FURTHER,
    *LEAKS,
    *WINDOWS,
    *AHEAD_MUTATIONS,
    *WITHDRAWALS,
    *CHECKPOINT_MUTATIONS,
    *REQUEST_MUTATIONS,
    *GATE_MUTATIONS,
    *TRAP_MUTATIONS,
    *WAITER_MUTATIONS,
    *LATE_MUTATIONS,
    *CLOSED_MUTATIONS,
)

LONGEST = (
    "hold: leave a request to the next allocation, after a crash",
    "hold, listing ahead: leave entries listed ahead behind",
    "hold: note only the pods of the latest version",
    "hold: believe a checkpoint although the watch of claims is refused",
    "hold, one pod in the list: take the hold out while a pod whose entry was taken out may be "
    "bound",
)
"""These take a third of the time of all, and show only within these bounds. In the tests they take
turns, one each day."""
