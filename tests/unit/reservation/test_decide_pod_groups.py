"""A claim that pods share through their PodGroup, with the workload's reference beside it."""

from __future__ import annotations

import pytest

from claimctl.reservation.facts.decision import RemoveClaimFinalizer, SetFinalizer
from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservation
from tests.support.builders import (
    claim,
    deployment_ref,
    finished,
    group_ref,
    node,
    pending,
    pod_group,
    pod_ref,
    reservation,
    running,
    tomb,
)
from tests.support.claim_cases import condition, held_status, lists
from tests.support.stage import DecisionStage

ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=3, pod_group="train")
IDLE = WorkloadState(WorkloadPhase.IDLE, "uid-train", pod_group="train")
ENDED = WorkloadState(WorkloadPhase.ENDED, "uid-train", pod_group="train")
GONE = WorkloadState(WorkloadPhase.ABSENT)
RULES = Rules("podgroup")
WORKLOAD, GROUP = deployment_ref(), group_ref()
FOREIGN = group_ref("other", "uid-other-group")


def stage(
    on: ResourceClaim | None,
    workload: WorkloadState,
    *,
    reserved: ClaimReservation | None = None,
    recorded: bool = True,
) -> DecisionStage:
    status = held_status(dialect="podgroup", pod_group_name="train") if recorded else None
    made = reserved or reservation(status=status)
    held = {made.metadata.name: (made, workload)}
    made_stage = DecisionStage(on, held, rules=RULES, nodes={"node-0": node()})
    made_stage.groups = {"train": pod_group()}
    return made_stage


def test_the_hold_is_added_beside_the_group_and_no_pod_is_listed() -> None:
    on = stage(claim(GROUP), ACTIVE, recorded=False)
    on.put(running("a", group="train"), finished("b", group="train"))
    assert lists(on.settle(seconds=60)) == [((GROUP, WORKLOAD), False)]
    assert condition(on, "Reserved") == ("True", "Reserved")
    assert condition(on, "Consistent") == ("True", "Consistent")


def frozen(*listed: Reference) -> DecisionStage:
    on = stage(claim(*listed), ACTIVE)
    on.frozen = True
    return on


def test_frozen_for_an_upgrade_the_pods_are_listed_beside_their_group() -> None:
    on = frozen(GROUP, WORKLOAD)
    on.put(running("a", group="train"), pending("b", group="train"), pending("c", group="other"))
    assert lists(on.settle(seconds=60)) == [
        ((GROUP, WORKLOAD, pod_ref("a"), pod_ref("b")), False),
    ]


def test_frozen_a_claim_with_more_pods_than_places_keeps_its_list() -> None:
    """The plan refuses such a claim. A part of the pods would fill the list and help none."""
    on = frozen(GROUP, WORKLOAD)
    on.put(*(running(f"pod-{number}", group="train") for number in range(255)))
    assert on.settle(seconds=60) == []
    on.pods.popitem()
    ((entries, _),) = lists(on.settle(seconds=60))
    assert len(entries) == 256


def test_frozen_for_an_upgrade_a_pod_that_waits_for_its_gone_group_is_not_listed() -> None:
    on = frozen(WORKLOAD, pod_ref("a"))
    on.groups = {}
    on.put(running("a", group="train"), pending("b", group="train"))
    assert on.settle(seconds=60) == []
    on.put(running("b", group="train"))  # a scheduler was binding it when its group went
    assert lists(on.settle(seconds=60)) == [((WORKLOAD, pod_ref("a"), pod_ref("b")), False)]


def test_an_idle_workload_is_released_by_fence_and_settle() -> None:
    on = stage(claim(GROUP, WORKLOAD), IDLE)
    assert on.settle(seconds=59) == []
    assert lists(on.settle(seconds=1.5)) == [((WORKLOAD,), False)]
    assert on.settle(seconds=4) == []
    writes = on.settle(seconds=2)
    assert [type(w) for w in writes[-1:]] == [RemoveClaimFinalizer]
    assert lists(writes) == [((), True)]
    assert condition(on, "Released") == ("True", "Idle")


def test_without_a_listed_group_the_hold_stays_while_schedulers_settle() -> None:
    on = stage(claim(WORKLOAD, GROUP), ACTIVE)
    on.decide()
    on.claim = claim(WORKLOAD, version="11")
    on.reservations["train-slice"] = (on.reservations["train-slice"][0], GONE)
    assert on.settle(seconds=4.9) == []
    assert condition(on, "Released") == ("False", "Settling")
    assert lists(on.settle(seconds=0.2)) == [((), True)]


def test_a_claim_that_never_listed_a_group_is_released_at_once() -> None:
    on = stage(claim(WORKLOAD), GONE)
    assert lists(on.settle(seconds=0.2)) == [((), True)]


def test_a_foreign_holder_gets_a_claim_that_never_listed_a_group() -> None:
    other = deployment_ref("other", "uid-other")
    on = stage(claim(WORKLOAD, other), GONE)
    assert lists(on.settle(seconds=1)) == [((other,), False)]


def test_a_group_that_is_listed_again_begins_the_release_anew() -> None:
    on = stage(claim(WORKLOAD, GROUP), ACTIVE)
    on.decide()
    on.claim = claim(WORKLOAD, version="10")
    on.reservations["train-slice"] = (on.reservations["train-slice"][0], GONE)
    on.settle(seconds=3)
    on.claim = claim(WORKLOAD, GROUP, version="11")
    assert lists(on.settle(seconds=1)) == [((WORKLOAD,), False)]
    assert lists(on.settle(seconds=6)) == [((), True)]


def test_a_consumer_that_came_after_the_fence_gets_the_hold_back_beside_its_group() -> None:
    on = stage(claim(GROUP, WORKLOAD), IDLE)
    assert lists(on.settle(seconds=61)) == [((WORKLOAD,), False)]
    on.reservations["train-slice"] = (on.reservations["train-slice"][0], ACTIVE)
    on.put(running("a", group="train"))
    on.claim = claim(GROUP, version="20")
    assert lists(on.settle(seconds=10)) == [((GROUP, WORKLOAD), False)]


def test_finished_pods_get_tombstones_at_the_fence_and_not_before() -> None:
    on = stage(claim(GROUP, WORKLOAD), ENDED)
    on.put(finished("a", group="train"), finished("b", group="train"))
    assert lists(on.settle(seconds=1)) == [((WORKLOAD, tomb("a"), tomb("b")), False)]
    assert lists(on.settle(seconds=6)) == [((), True)]


def test_a_hold_gives_up_its_place_at_the_fence_to_a_tombstone() -> None:
    on = stage(claim(GROUP, WORKLOAD), ENDED)
    on.put(*(finished(f"p{i}", group="train") for i in range(256)))
    ((left, deallocates),) = lists(on.settle(seconds=1))
    assert (len(left), WORKLOAD in left, deallocates) == (256, False, False)
    assert lists(on.settle(seconds=6)) == [((), True)]


def test_with_more_finished_pods_than_places_the_group_has_to_go_first() -> None:
    on = stage(claim(GROUP, WORKLOAD), ENDED)
    on.put(*(finished(f"p{i}", group="train") for i in range(257)))
    assert on.settle(seconds=3600) == []
    assert condition(on, "Released") == ("False", "FinishedPodsLeft")
    assert on.snapshot().too_many_finished
    on.groups = {}
    on.claim = claim(WORKLOAD, version="11")
    assert on.settle(seconds=4.9) == []
    assert lists(on.settle(seconds=0.2)) == [((), True)]


def test_a_group_that_is_gone_is_left_to_kcm_and_taken_out_when_that_is_late() -> None:
    on = stage(claim(GROUP, WORKLOAD), ACTIVE)
    on.groups = {}
    assert on.settle(seconds=9) == []
    assert lists(on.settle(seconds=2)) == [((WORKLOAD,), False)]


def test_a_group_that_only_the_cache_lacks_stays() -> None:
    on = stage(claim(GROUP, WORKLOAD), ACTIVE)
    on.groups = {"later": pod_group("later", uid=GROUP.uid)}
    on.groups["later"] = pod_group("train", uid=GROUP.uid)
    assert on.settle(seconds=60) == []


@pytest.mark.parametrize("listed", [(GROUP, WORKLOAD, FOREIGN), (WORKLOAD, FOREIGN)])
def test_a_group_of_somebody_else_is_left_reported_and_blocks(
    listed: tuple[Reference, ...],
) -> None:
    on = stage(claim(*listed), GONE)
    on.groups["other"] = pod_group("other", uid=FOREIGN.uid)
    assert on.settle(seconds=3600) == []
    assert condition(on, "Released") == ("False", "UnknownReferences")
    assert condition(on, "Consistent") == ("False", "UnknownReferences")


def test_a_group_that_others_made_belongs_to_the_workload_whose_template_names_it() -> None:
    on = stage(claim(GROUP, WORKLOAD), IDLE, recorded=False)
    assert lists(on.settle(seconds=70)) == [((WORKLOAD,), False), ((), True)]


def test_pods_of_a_template_without_group_are_held_as_in_hold_and_told_what_to_add() -> None:
    plain = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1)
    on = stage(claim(pod_ref("a")), plain, recorded=False)
    on.groups = {}
    on.put(running("a"))
    assert lists(on.settle(seconds=60)) == [((pod_ref("a"), WORKLOAD), False)]
    assert condition(on, "Reserved") == ("True", "PodTemplateWithoutSchedulingGroup")


def test_a_finished_pod_outside_the_group_gets_its_tombstone_at_once() -> None:
    on = stage(claim(GROUP, pod_ref("b"), WORKLOAD), ACTIVE)
    on.put(running("a", group="train"), finished("b"))
    assert lists(on.settle()) == [((GROUP, tomb("b"), WORKLOAD), False)]


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        (("another",), "ClaimNotInPodGroup"),
        (("one", "two", "three", "four"), "TooManyClaimsForPodGroup"),
        ((), "PodGroupPending"),
    ],
)
def test_a_group_that_does_not_share_the_claim_is_reported(
    claims: tuple[str, ...], reason: str
) -> None:
    on = stage(claim(pod_ref("a"), WORKLOAD), ACTIVE)
    on.groups = {"train": pod_group("train", *claims)} if claims else {}
    on.put(running("a", group="train"))
    assert on.settle(seconds=60) == []
    assert condition(on, "Reserved") == ("True", reason)


def test_a_withdrawn_hold_beside_an_idle_group_is_released() -> None:
    reserved = reservation(status=held_status(pod_group_name="train"), deleting=True)
    on = stage(claim(GROUP, WORKLOAD), ACTIVE, reserved=reserved)
    writes = on.settle(seconds=7)
    assert lists(writes) == [((WORKLOAD,), False), ((), True)]
    assert isinstance(writes[-1], SetFinalizer)
    assert on.reservations == {}


def test_a_claim_being_deleted_is_settled_and_deallocated_in_one_write() -> None:
    on = stage(claim(GROUP, WORKLOAD, deleting=True), ACTIVE)
    assert on.settle(seconds=4.9) == []
    assert lists(on.settle(seconds=0.2)) == [((), True)]


def test_a_fence_that_somebody_undoes_again_and_again_is_given_a_rest() -> None:
    on = stage(claim(GROUP, WORKLOAD), GONE)
    on.repeated_writes = 3
    assert on.settle(seconds=20) == []
    assert condition(on, "Released") == ("False", "FightingWriter")


def test_a_workload_that_wants_more_pods_than_places_is_told_before_it_hurts() -> None:
    wide = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=300)
    on = stage(claim(pod_ref("a"), WORKLOAD), wide)
    on.rules = Rules("hold")
    on.put(running("a"))
    on.settle(seconds=5)
    assert condition(on, "Consistent") == ("True", "MorePodsThanPlaces")
    told = on.reservations["train-slice"][0].status.conditions
    assert any("mode podgroup" in each.message for each in told)


def test_the_pods_of_a_group_are_never_too_many() -> None:
    wide = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=600, pod_group="train")
    on = stage(claim(GROUP, WORKLOAD), wide)
    on.put(running("a", group="train"))
    on.settle(seconds=5)
    assert condition(on, "Consistent") == ("True", "Consistent")
