"""Holds never keep a pod out of a list that has places enough for the pods."""

from __future__ import annotations

import pytest

from claimctl.reservation.snapshot import Rules
from claimctl.reservation.workloads import Life, WorkloadState
from claimctl.wire.claims import Reference
from tests.support.builders import (
    claim,
    deployment_ref,
    finished,
    group_ref,
    pending,
    pod_group,
    pod_ref,
    reservation,
    running,
    tomb,
)
from tests.support.claim_cases import HOLD, OLD_HOLD, condition, held_status, lists
from tests.support.stage import Stage

MEMBER = WorkloadState(Life.ACTIVE, "uid-train", wants=3, pod_group="train")
RULES = Rules("podgroup")
ASKED = {"claimctl.io/release": "uid-slice"}
NAMES = ["train", "eval", "more"]


def held_for(
    holds: int, *others: Reference, life: Life = Life.ACTIVE, **meta: dict[str, str]
) -> Stage:
    """A claim with other entries and that many holds, each with a reservation."""
    refs = [deployment_ref(name, f"uid-{name}") for name in NAMES[:holds]]
    reserved = {
        f"{ref.name}-slice": (
            reservation(
                f"{ref.name}-slice",
                workload=ref.name,
                status=held_status(reserved_for=ref),
                annotations=meta.get("annotations"),
            ),
            WorkloadState(life, ref.uid, wants=200),
        )
        for ref in refs
    }
    return Stage(claim(*others, *refs), reserved, rules=HOLD)


@pytest.mark.parametrize("holds", [1, 2, 3])
@pytest.mark.parametrize("why", ["wanted", "ended", "asked for"])
def test_all_holds_step_aside_for_a_pod_that_waits_at_a_full_list(holds: int, why: str) -> None:
    names = [f"p{i}" for i in range(256 - holds)]
    pods = tuple(map(pod_ref, names))
    on = held_for(
        holds,
        *pods,
        life=Life.ENDED if why == "ended" else Life.ACTIVE,
        annotations=ASKED if why == "asked for" else {},
    )
    on.put(*map(running, names), pending("waits"))
    assert lists(on.settle(seconds=60)) == [(pods, False)]
    reason = "HoldYielded" if why == "wanted" else "Releasing"
    assert condition(on, "Reserved") == ("False", reason)


@pytest.mark.parametrize("holds", [1, 2, 3])
def test_holds_stay_where_a_pod_that_waits_finds_a_place(holds: int) -> None:
    names = [f"p{i}" for i in range(255 - holds)]
    on = held_for(holds, *map(pod_ref, names))
    on.put(*map(running, names), pending("waits"))
    assert on.settle(seconds=60) == []


def test_holds_that_stepped_aside_stay_away_until_no_pod_needs_their_places() -> None:
    names = [f"p{i}" for i in range(255)]
    on = held_for(2, *map(pod_ref, names))
    on.claim = claim(*map(pod_ref, names))
    on.put(*map(running, names), pending("waits"))
    assert lists(on.settle(seconds=60)) == []
    on.remove("waits")
    (back,) = lists(on.settle(seconds=60))
    assert back[0][-1] in {deployment_ref("train", "uid-train"), deployment_ref("eval", "uid-eval")}


def test_a_listed_group_of_the_workload_leaves_no_place_either() -> None:
    names = [f"p{i}" for i in range(254)]
    on = held_for(1, group_ref(), *map(pod_ref, names))
    on.rules = RULES
    on.groups = {"train": pod_group()}
    held, _ = on.reservations["train-slice"]
    on.reservations["train-slice"] = (held, MEMBER)
    on.put(*map(running, names), running("m", group="train"))
    on.put(pending("shares", group="train"))
    assert lists(on.settle(seconds=60)) == []
    on.put(pending("waits"))
    assert lists(on.settle(seconds=60)) == [((group_ref(), *map(pod_ref, names)), False)]


def test_tombstones_stay_when_the_hold_of_an_ended_workload_steps_aside() -> None:
    names = [f"p{i}" for i in range(254)]
    others = (tomb("done"), *map(pod_ref, names))
    on = held_for(1, *others, life=Life.ENDED)
    on.rules = OLD_HOLD
    on.put(finished("done"), *map(running, names), pending("waits"))
    assert lists(on.settle(seconds=60)) == [(others, False)]
