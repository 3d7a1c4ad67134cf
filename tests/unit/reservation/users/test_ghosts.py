"""Ghosts: how long they keep a claim, and how two controllers agree on them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from claimctl.reservation.facts.memory import SeenGhost, SignsOfLife
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.users.ghosts import (
    ghost_blockers,
    ghosts_to_record,
    has_ended,
    merge_ghosts,
)
from claimctl.wire.reservations import (
    ENDED_PODS_ANNOTATION,
    ClaimReservationStatus,
    ForceDeletedPod,
)
from tests.support.builders import CLAIM, NAMESPACE, NOW, after, claim, reservation
from tests.support.claim_cases import GONE, WORKLOAD, lists, stage


def test_a_ghost_keeps_the_claim_for_its_grace() -> None:
    on = stage(claim(WORKLOAD), GONE)
    ghost = ForceDeletedPod(uid="g", name="a", node_name="node-0", boot_id="boot-1", since=NOW)
    on.ghosts = {"g": (ghost, 0.0)}
    assert on.settle(seconds=299) == []
    assert on.reservations["train-slice"][0].status.force_deleted_pods == (ghost,)
    assert lists(on.settle(seconds=2)) == [((), True)]


def test_a_claim_allocated_before_the_controller_looked_waits_for_the_grace() -> None:
    on = stage(claim(WORKLOAD), GONE)
    on.watched_since_before_allocation = False
    assert on.settle(seconds=299) == []
    assert lists(on.settle(seconds=2)) == [((), True)]


def ghost(**changes: Any) -> ForceDeletedPod:
    base = ForceDeletedPod(
        uid="g", name="lost", node_name="node-0", boot_id="boot-1", since=after(-60)
    )
    return replace(base, **changes)


LATER = after(86_400)


@pytest.mark.parametrize(
    ("recorded", "mine", "expected"),
    [
        pytest.param(ghost(), ghost(since=LATER), ghost(), id="another clock saw it"),
        pytest.param(ghost(), ghost(boot_id=""), ghost(), id="I do not know the boot"),
        pytest.param(ghost(), ghost(boot_id="boot-2"), ghost(boot_id=""), id="two boots"),
        pytest.param(ghost(boot_id=""), ghost(), ghost(boot_id=""), id="doubt stays"),
        pytest.param(
            ghost(node_name="", boot_id=""), ghost(since=LATER), ghost(), id="I know where it ran"
        ),
        pytest.param(
            ghost(), ghost(node_name="", boot_id="", since=LATER), ghost(), id="I know less"
        ),
    ],
)
def test_two_that_saw_a_pod_vanish_agree_on_the_record(
    recorded: ForceDeletedPod, mine: ForceDeletedPod, expected: ForceDeletedPod
) -> None:
    found = merge_ghosts(recorded, mine)
    assert found == expected
    assert merge_ghosts(found, mine) == merge_ghosts(found, recorded) == found


def vanished(
    *known: tuple[ForceDeletedPod, float],
    recorded: tuple[ForceDeletedPod, ...] = (),
    elsewhere: tuple[ForceDeletedPod, ...] = (),
    told: frozenset[str] = frozenset(),
) -> tuple[ForceDeletedPod, ...]:
    """What the first of two reservations tells of the ghosts known here, with their ages."""
    reservations = tuple(
        Held(
            reservation(name, status=ClaimReservationStatus(force_deleted_pods=ghosts)),
            WorkloadState(WorkloadPhase.ABSENT),
        )
        for name, ghosts in (("one", recorded), ("two", elsewhere))
    )
    snapshot = Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=claim(),
        reservations=reservations,
        ghosts=tuple(SeenGhost(each, age, once_recorded=each.uid in told) for each, age in known),
    )
    return ghosts_to_record(snapshot, recorded)


UNSEEN = ghost(node_name="", boot_id="")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(vanished((ghost(), 0)), (ghost(),), id="news"),
        pytest.param(vanished((UNSEEN, 4)), (), id="the pod may still show up"),
        pytest.param(vanished((UNSEEN, 5)), (UNSEEN,), id="nobody saw it"),
        pytest.param(
            vanished((ghost(since=LATER), 9), recorded=(ghost(),)), (ghost(),), id="on record"
        ),
        pytest.param(vanished((ghost(), 300), recorded=(ghost(),)), (), id="its grace is over"),
        pytest.param(
            vanished((ghost(), 9), told=frozenset({"g"})), (), id="another one found it over"
        ),
        pytest.param(
            vanished((ghost(since=LATER), 9), elsewhere=(ghost(),), told=frozenset({"g"})),
            (ghost(),),
            id="on record of another reservation",
        ),
        pytest.param(vanished(recorded=(ghost(),)), (), id="it came back"),
    ],
)
def test_the_record_of_vanished_pods(
    told: tuple[ForceDeletedPod, ...], expected: tuple[ForceDeletedPod, ...]
) -> None:
    assert told == expected


RECENT = (21.0, 11.0)


@pytest.mark.parametrize(
    ("age", "signs", "expected"),
    [
        pytest.param(62.9, SignsOfLife((21, 11)), False, id="the earlier renewal is too early"),
        pytest.param(63.0, SignsOfLife((21, 11)), True, id="two renewals after 30 + 12 s"),
        pytest.param(63.0, SignsOfLife((60, 1)), False, id="the later one may be of a new kubelet"),
        pytest.param(900.0, SignsOfLife((11,)), False, id="one renewal"),
        pytest.param(900.0, SignsOfLife(()), False, id="silent since it vanished"),
        pytest.param(900.0, SignsOfLife((899, 889)), False, id="silent since"),
        pytest.param(900.0, SignsOfLife(RECENT, 122.9), False, id="started, 60 s more"),
        pytest.param(900.0, SignsOfLife(RECENT, 123.0), True, id="started, and over"),
        pytest.param(0.0, SignsOfLife((), ended=True), True, id="it has ended before"),
        pytest.param(900.0, SignsOfLife(RECENT, away=("gpu",), stood=(900, 1)), False, id="away"),
        pytest.param(900.0, SignsOfLife(RECENT, stood=(35.9, 1)), False, id="back a moment ago"),
        pytest.param(
            900.0, SignsOfLife(RECENT, stood=(36.0, 1)), True, id="back, and its time over"
        ),
        pytest.param(900.0, SignsOfLife(RECENT, stood=(900, 866)), False, id="seen long ago"),
        pytest.param(
            77.9, SignsOfLife(RECENT, stood=(900, 1)), False, id="may have left meanwhile"
        ),
        pytest.param(78.0, SignsOfLife(RECENT, stood=(900, 1)), True, id="was there in its time"),
        pytest.param(900.0, SignsOfLife(RECENT, 137.9, stood=(900, 1)), False, id="started, left"),
        pytest.param(900.0, SignsOfLife(RECENT, 138.0, stood=(900, 1)), True, id="started, there"),
        pytest.param(900.0, SignsOfLife(RECENT, 500, stood=(95.9, 1)), False, id="started, back"),
        pytest.param(
            900.0, SignsOfLife(RECENT, 500, stood=(96.0, 1)), True, id="back for a minute"
        ),
        pytest.param(900.0, SignsOfLife((899, 889), stood=(900, 1)), False, id="a silent kubelet"),
        pytest.param(0.0, SignsOfLife(ended=True, away=("gpu",)), True, id="ended, then it left"),
    ],
)
def test_when_a_ghost_has_ended(age: float, signs: SignsOfLife, expected: bool) -> None:
    known = ghost(termination_grace_period_seconds=30)
    assert has_ended(known, age, signs) is expected


def test_a_ghost_from_an_older_record_counts_as_one_with_a_long_grace_period() -> None:
    assert not has_ended(ghost(), 332, SignsOfLife(RECENT))
    assert has_ended(ghost(), 333, SignsOfLife(RECENT))


def waits(
    *graces: int | None,
    age: float,
    signs: SignsOfLife | None = None,
    annotations: dict[str, str] | None = None,
    own: int = 30,
) -> list[tuple[str, float | None]]:
    """What a ghost with a grace period of ``own`` seconds waits for, and for how long."""
    reservations = tuple(
        Held(
            reservation(
                f"r{number}", force_deleted_pod_grace_seconds=seconds, annotations=annotations
            ),
            WorkloadState(WorkloadPhase.ABSENT),
        )
        for number, seconds in enumerate(graces)
    )
    snapshot = Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=claim(),
        reservations=reservations,
        ghosts=(SeenGhost(ghost(termination_grace_period_seconds=own), age, signs),),
    )
    return [(blocker.message, blocker.after) for blocker in ghost_blockers(snapshot)]


@pytest.mark.parametrize(
    ("found", "word", "after"),
    [
        pytest.param(waits(None, age=0), "for 300 s", 300, id="no Lease"),
        pytest.param(
            waits(None, age=9000, signs=SignsOfLife(missing_age=20)), "300 s", 280, id="Lease gone"
        ),
        pytest.param(waits(None, age=0, own=3600), "3672 s", 3672, id="no Lease, longer grace"),
        pytest.param(waits(7, age=2), "for 7 s", 5, id="a fixed time"),
        pytest.param(waits(7, age=2, signs=SignsOfLife()), "for 7 s", 5, id="beside a Lease, too"),
        pytest.param(
            waits(None, age=2, signs=SignsOfLife()),
            "30 s and 12 s)",
            64.8,
            id="until signs of life",
        ),
        pytest.param(
            waits(None, age=9, signs=SignsOfLife((), 2.0)), "30 s and 72 s,", 124.8, id="started"
        ),
        pytest.param(
            waits(None, age=66, signs=SignsOfLife((9.0,))), "12 s)", 0.8, id="the end does not move"
        ),
        pytest.param(
            waits(None, age=67, signs=SignsOfLife((9.0,))), "72 s,", 59.8, id="perhaps started"
        ),
        pytest.param(
            waits(None, age=900, signs=SignsOfLife((9.0,))), "72 s,", None, id="late, started"
        ),
        pytest.param(
            waits(None, age=2, signs=SignsOfLife(renewal_seconds=75.0)), "12 s)", 200.0, id="slow"
        ),
        pytest.param(
            waits(None, age=299, signs=SignsOfLife(renewal_seconds=75.0)),
            "72 s",
            None,
            id="slow, not silent",
        ),
        pytest.param(
            waits(None, age=41, signs=SignsOfLife()), "--node-is-off node-0", None, id="silent"
        ),
        pytest.param(
            waits(None, age=2, signs=SignsOfLife(stood=(2.0, 0.0))),
            "published their devices for 35 s",
            87.4,
            id="until its drivers have been there",
        ),
        pytest.param(
            waits(None, age=200, signs=SignsOfLife((9.0,), 199.0, stood=(5.0, 0.0))),
            "published their devices for 95 s",
            102.4,
            id="its driver is back",
        ),
        pytest.param(
            waits(None, age=2, signs=SignsOfLife(away=("gpu",), stood=(0.0, 0.0))),
            "the driver gpu is away from node node-0, so nothing unprepares its devices; it counts "
            "as running until it is back or the node is rebooted, or until `claimctl release "
            f"{CLAIM} -n {NAMESPACE} --pod-has-ended lost`",
            None,
            id="its driver is away",
        ),
        pytest.param(
            waits(None, age=2, signs=SignsOfLife(away=("gpu", "nic"), stood=(0.0, 0.0))),
            "the drivers gpu, nic are away from node node-0",
            None,
            id="two drivers are away",
        ),
        pytest.param(
            waits(None, age=99, signs=SignsOfLife(away=("gpu",), stood=(0.0, 0.0))),
            "--node-is-off node-0",
            None,
            id="away from a silent node",
        ),
        pytest.param(
            waits(7, age=2, signs=SignsOfLife(away=("gpu",))), "for 7 s", 5, id="away, a fixed time"
        ),
        pytest.param(
            waits(None, age=9000, signs=SignsOfLife(missing_age=20, away=("gpu",))),
            "300 s",
            280,
            id="away, the node is gone",
        ),
        pytest.param(
            waits(None, 500, age=2, signs=SignsOfLife()), "two signs", 498, id="both, one longer"
        ),
        pytest.param(
            waits(None, 500, age=2, signs=SignsOfLife((), None, True)), "for 500 s", 498, id="ended"
        ),
    ],
)
def test_what_a_ghost_waits_for(
    found: list[tuple[str, float | None]], word: str, after: float | None
) -> None:
    ((message, left),) = found
    assert word in message
    assert left == (after if after is None else pytest.approx(after))


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(waits(None, age=300), id="no Lease, after 300 s"),
        pytest.param(
            waits(None, age=9000, signs=SignsOfLife(missing_age=300)), id="no Lease for 300 s"
        ),
        pytest.param(waits(7, age=7, signs=SignsOfLife()), id="a fixed time is over"),
        pytest.param(waits(None, age=50, signs=SignsOfLife((), None, True)), id="signs of life"),
        pytest.param(
            waits(None, age=1, signs=SignsOfLife(), annotations={ENDED_PODS_ANNOTATION: "x,g"}),
            id="somebody says so",
        ),
    ],
)
def test_a_ghost_that_has_ended_waits_for_nothing(found: list[Any]) -> None:
    assert found == []


def test_a_statement_about_other_pods_ends_no_ghost() -> None:
    assert waits(None, age=1, annotations={ENDED_PODS_ANNOTATION: "other"})
