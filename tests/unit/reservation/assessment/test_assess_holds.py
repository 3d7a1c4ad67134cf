"""Holds never keep a pod out of a list that has places enough for the pods."""

from __future__ import annotations

import pytest

from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
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
from tests.support.claim_cases import (
    ACTIVE,
    GONE,
    HOLD,
    NATIVE,
    OLD_HOLD,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)
from tests.support.stage import DecisionStage

MEMBER = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=3, pod_group="train")
RULES = Rules("podgroup")
ASKED = {"claimctl.io/release": "uid-slice"}
NAMES = ["train", "eval", "more"]


def held_for(
    holds: int,
    *others: Reference,
    phase: WorkloadPhase = WorkloadPhase.ACTIVE,
    **meta: dict[str, str],
) -> DecisionStage:
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
            WorkloadState(phase, ref.uid, wants=200),
        )
        for ref in refs
    }
    return DecisionStage(claim(*others, *refs), reserved, rules=HOLD)


@pytest.mark.parametrize("holds", [1, 2, 3])
@pytest.mark.parametrize("why", ["wanted", "ended", "asked for"])
def test_all_holds_step_aside_for_a_pod_that_waits_at_a_full_list(holds: int, why: str) -> None:
    names = [f"p{i}" for i in range(256 - holds)]
    pods = tuple(map(pod_ref, names))
    on = held_for(
        holds,
        *pods,
        phase=WorkloadPhase.ENDED if why == "ended" else WorkloadPhase.ACTIVE,
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
    on = held_for(1, *others, phase=WorkloadPhase.ENDED)
    on.rules = OLD_HOLD
    on.put(finished("done"), *map(running, names), pending("waits"))
    assert lists(on.settle(seconds=60)) == [(others, False)]


def test_a_hold_is_added_beside_the_pods_of_an_allocated_claim() -> None:
    on = stage(claim(pod_ref("a")), ACTIVE, recorded=False)
    on.put(running("a"))
    assert lists(on.settle()) == [((pod_ref("a"), WORKLOAD), False)]
    assert condition(on, "Reserved") == ("True", "Reserved")
    assert on.settle(seconds=5) == []


def test_nothing_is_added_to_a_claim_that_is_not_allocated_or_being_deleted() -> None:
    assert stage(claim(allocated=False), ACTIVE, recorded=False).settle() == []
    on = stage(claim(pod_ref("a"), deleting=True), ACTIVE, recorded=False)
    on.put(running("a"))
    assert on.settle(seconds=60) == []


def test_a_recreated_workload_takes_the_place_of_its_earlier_incarnation() -> None:
    on = stage(claim(pod_ref("a"), WORKLOAD), WorkloadState(WorkloadPhase.ACTIVE, "uid-2", wants=1))
    on.put(running("a"))
    new = deployment_ref(uid="uid-2")
    assert lists(on.settle()) == [((pod_ref("a"), new), False)]


def test_a_hold_leaves_beside_the_reference_of_another_client() -> None:
    """The other reference stays. When it has gone, claimctl deallocates."""
    foreign = Reference(api_group="example.com", resource="vms", name="vm", uid="v")
    on = stage(claim(foreign, WORKLOAD), GONE)
    assert lists(on.settle(seconds=3600)) == [((foreign,), False)]
    assert condition(on, "Released") == ("False", "UnknownReferences")
    assert condition(on, "Consistent") == ("False", "UnknownReferences")
    on.claim = claim(version="900")
    assert lists(on.settle(seconds=3600)) == [((), True)]


def test_a_hold_stays_beside_another_reference_as_long_as_a_finished_pod_is_there() -> None:
    """kube-controller-manager would put the pod back and remove it for ever."""
    foreign = Reference(api_group="example.com", resource="vms", name="vm", uid="v")
    on = stage(claim(foreign, WORKLOAD, tomb("a")), GONE)
    on.put(finished("a"))
    assert lists(on.settle(seconds=3600)) == []
    on.remove("a")
    assert lists(on.settle(seconds=3600))[-1] == ((foreign,), False)


def test_a_hold_stays_beside_another_reference_as_long_as_a_pod_or_a_ghost_counts() -> None:
    foreign = Reference(api_group="example.com", resource="vms", name="vm", uid="v")
    on = stage(claim(foreign, WORKLOAD, pod_ref("a")), GONE)
    on.put(running("a"))
    assert lists(on.settle(seconds=3600)) == []


def test_a_list_that_somebody_else_keeps_changing_back_is_reported_and_left() -> None:
    on = stage(claim(pod_ref("a")), ACTIVE)
    on.put(running("a"))
    on.repeated_writes = 3
    assert on.settle(seconds=60) == []
    assert condition(on, "Consistent") == ("False", "FightingWriter")


def test_frozen_for_a_downgrade_no_workload_reference_is_added_and_new_pods_are_listed() -> None:
    on = stage(claim(pod_ref("a"), shared=True, created_for=WORKLOAD), ACTIVE, NATIVE)
    on.frozen = True
    on.put(running("a"), running("b"))
    assert lists(on.settle(seconds=5)) == [((pod_ref("a"), pod_ref("b")), False)]
    assert condition(on, "Reserved") == ("False", "FrozenForDowngrade")
    assert condition(on, "Ready") == ("False", "FrozenForDowngrade")


def test_frozen_a_workload_reference_that_still_stands_is_left_as_it_is() -> None:
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), ACTIVE, NATIVE)
    on.frozen = True
    on.put(running("a"))
    assert on.settle(seconds=5) == []


def test_killed_before_the_status_was_written_the_hold_is_still_known_as_ours() -> None:
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), GONE, NATIVE, recorded=False)
    assert lists(on.settle(seconds=6)) == [((), False), ((), True)]
