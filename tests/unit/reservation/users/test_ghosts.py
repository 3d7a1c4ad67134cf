"""Ghosts: how long they keep a claim, and how two controllers agree on them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.users.ghosts import ghosts_to_record, merge_ghosts
from claimctl.wire.reservations import ClaimReservationStatus, ForceDeletedPod
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
        ghosts=tuple(each for each, _ in known),
        memory=Memory(ghost_age={each.uid: age for each, age in known}, once_recorded_ghosts=told),
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
