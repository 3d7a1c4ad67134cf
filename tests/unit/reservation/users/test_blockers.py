"""What blocks a release, and for how long."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from claimctl.reservation.facts.memory import Memory, Openings, SeenGhost
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.users.blockers import blockers
from claimctl.reservation.users.ghosts import longer_grace
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import ForceDeletedPod
from claimctl.wire.resources import PODS
from claimctl.wire.unreadable import Unreadable
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    finished,
    node,
    pod_ref,
    reservation,
    running,
    tomb,
)
from tests.support.claim_cases import GONE, HOLD, NATIVE, WORKLOAD, condition, held_status, stage


def test_a_consumer_keeps_the_claim_of_an_ended_workload() -> None:
    for shared in (False, True):
        refs = (WORKLOAD,) if shared else (pod_ref("a"), WORKLOAD)
        created_for = WORKLOAD if shared else None
        on = stage(
            claim(*refs, shared=shared, created_for=created_for), GONE, NATIVE if shared else HOLD
        )
        on.put(running("a"))
        assert on.settle(seconds=3600) == []
        assert condition(on, "Released") == ("False", "ConsumersLeft")


PODGROUP = Rules("podgroup")
GHOST = ForceDeletedPod(uid="g", name="lost", node_name="node-0", boot_id="boot-1", since=NOW)
BAD_POD = Unreadable(PODS, "odd", NAMESPACE, "bad", "uid-bad", "3", b"{}")


def held(name: str = "train-slice", grace: int = 300) -> Held:
    made = reservation(name, status=held_status(), force_deleted_pod_grace_seconds=grace)
    return Held(made, GONE)


def watched(unnoticed_age: float, group_age: float = inf) -> Memory:
    """The memory of a claim that was watched on while the watch of pods had a gap."""
    openings = Openings(group_age=group_age)
    return Memory(blind_age=0.0, unnoticed_age=unnoticed_age, openings=openings)


def seen(*listed: Reference, **facts: Any) -> Snapshot:
    """A claim whose workload is gone."""
    known: dict[str, Any] = {
        "claim": claim(*listed),
        "rules": HOLD,
        "reservations": (held(),),
        "nodes": {"node-0": node()},
        **facts,
    }
    return Snapshot(NOW, NAMESPACE, CLAIM, **known)


@pytest.mark.parametrize(
    ("snapshot", "found"),
    [
        pytest.param(seen(WORKLOAD), [], id="nothing"),
        pytest.param(seen(pod_ref("gone"), tomb("a"), WORKLOAD), [], id="no foreign entry"),
        pytest.param(
            seen(WORKLOAD, pods=(running("a"),)), [(Reason.CONSUMERS_LEFT, None)], id="a pod"
        ),
        pytest.param(seen(WORKLOAD, pods=(finished("a"),)), [], id="a finished pod"),
        pytest.param(
            seen(WORKLOAD, ghosts=(SeenGhost(GHOST, 100.0),)),
            [(Reason.FORCE_DELETED_PODS, 200.0)],
            id="a ghost within its grace",
        ),
        pytest.param(
            seen(WORKLOAD, ghosts=(SeenGhost(GHOST, 300.0),)),
            [],
            id="a ghost past its grace",
        ),
        pytest.param(
            seen(
                WORKLOAD,
                ghosts=(SeenGhost(GHOST, 400.0),),
                reservations=(held(), held("other", grace=500)),
            ),
            [(Reason.FORCE_DELETED_PODS, 100.0)],
            id="the longest grace counts",
        ),
        pytest.param(
            seen(WORKLOAD, ghosts=(SeenGhost(GHOST),), nodes={"node-0": node(boot="boot-2")}),
            [(Reason.FORCE_DELETED_PODS, 300.0)],
            id="a ghost whose node has another boot ID: it may be another machine",
        ),
        pytest.param(
            seen(WORKLOAD, ghosts=(SeenGhost(GHOST),), nodes={}),
            [(Reason.FORCE_DELETED_PODS, 300.0)],
            id="a ghost whose node is gone",
        ),
        pytest.param(
            seen(WORKLOAD, memory=Memory(blind_age=100.0)),
            [(Reason.HISTORY_UNKNOWN, 200.0)],
            id="a history that this process has not seen",
        ),
        pytest.param(seen(WORKLOAD, memory=Memory(blind_age=300.0)), [], id="seen for the grace"),
        pytest.param(
            seen(WORKLOAD, memory=watched(unnoticed_age=inf)), [], id="each listed pod was noted"
        ),
        pytest.param(
            seen(WORKLOAD, memory=watched(unnoticed_age=120.0)),
            [(Reason.HISTORY_UNKNOWN, 180.0)],
            id="a listed pod may have vanished in a gap",
        ),
        pytest.param(
            seen(
                WORKLOAD,
                memory=watched(unnoticed_age=inf, group_age=3000.0),
                rules=PODGROUP,
            ),
            [(Reason.HISTORY_UNKNOWN, 300.0)],
            id="pods of a PodGroup are not listed",
        ),
        pytest.param(
            seen(WORKLOAD, memory=watched(unnoticed_age=inf), rules=PODGROUP),
            [],
            id="no PodGroup was ever listed",
        ),
        pytest.param(
            seen(WORKLOAD, deployment_ref("other", "uid-other")),
            [(Reason.UNKNOWN_REFERENCES, None)],
            id="a foreign entry",
        ),
        pytest.param(
            seen(WORKLOAD, unreadable=(BAD_POD,)), [(Reason.UNREADABLE, None)], id="unreadable"
        ),
    ],
)
def test_a_release_is_blocked_by(
    snapshot: Snapshot, found: list[tuple[Reason, float | None]]
) -> None:
    own = frozenset({WORKLOAD.uid})
    blocked = blockers(snapshot, Reason.WORKLOAD_ENDED, own)
    assert [(blocker.reason, blocker.after) for blocker in blocked] == found


@pytest.mark.parametrize(
    ("graces", "allocated", "lent"),
    [
        pytest.param((500,), True, None, id="the only reservation"),
        pytest.param((500, 300), True, 500.0, id="the longest grace"),
        pytest.param((300, 300), True, None, id="no longer than the other"),
        pytest.param((500, 300), False, None, id="the claim is not allocated"),
    ],
)
def test_a_withdrawn_reservation_lends_its_grace(
    graces: tuple[int, ...], allocated: bool, lent: float | None
) -> None:
    reservations = tuple(held(f"r{number}", grace) for number, grace in enumerate(graces))
    snapshot = seen(
        claim=claim(allocated=allocated), reservations=reservations, ghosts=(SeenGhost(GHOST),)
    )
    found = longer_grace(snapshot, reservations[0])
    assert (found.after if found else None) == lent
