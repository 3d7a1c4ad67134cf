"""A withdrawn hold leaves the claim to a running PodGroup, and to nothing less."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.reservation.facts.decision import SetFinalizer
from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.meta import OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import FINALIZER
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
from tests.support.claim_cases import held_status, lists
from tests.support.stage import DecisionStage

ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=3, pod_group="train")
WORKLOAD, GROUP = deployment_ref(), group_ref()
OTHER = group_ref("other", "uid-other-group")
OWNER = OwnerReference(
    api_version="apps/v1", kind="Deployment", name="train", uid="uid-train", controller=True
)
MEMBER = running("a", group="train")
PARTED = 5.0
"""Seconds from the deletion of the reservation until no other controller adds its hold."""


def withdrawn(
    *listed: Reference, pods: tuple[Pod, ...] = (MEMBER,), owned: bool = False
) -> DecisionStage:
    status = held_status(dialect="podgroup", pod_group_name="train")
    made = reservation(status=status, deleting=True)
    if owned:
        made = replace(made, metadata=replace(made.metadata, owner_references=(OWNER,)))
    on = DecisionStage(
        claim(*listed or (GROUP, WORKLOAD)),
        {made.metadata.name: (made, ACTIVE)},
        rules=Rules("podgroup"),
        nodes={"node-0": node()},
    )
    on.groups = {"train": pod_group(made_by_claimctl=True)}
    on.reservations_deleting_since = 0.0
    on.put(*pods)
    return on


def test_the_hold_goes_after_the_settle_time_and_the_reservation_with_it() -> None:
    on = withdrawn()
    assert on.settle(seconds=PARTED - 0.1) == []
    writes = on.settle(seconds=0.2)
    assert lists(writes) == [((GROUP,), False)]
    assert isinstance(writes[-1], SetFinalizer)
    assert on.reservations == {}


def test_a_group_of_another_client_keeps_the_claim_as_well() -> None:
    on = withdrawn()
    on.groups = {"train": pod_group(finalizers=(FINALIZER,))}
    assert lists(on.settle(seconds=PARTED)) == [((GROUP,), False)]


def test_entries_of_other_clients_and_of_pods_stay() -> None:
    on = withdrawn(OTHER, GROUP, pod_ref("b"), WORKLOAD, pods=(MEMBER, running("b")))
    assert lists(on.settle(seconds=PARTED)) == [((OTHER, GROUP, pod_ref("b")), False)]


def test_tombstones_of_the_group_go_in_the_same_write() -> None:
    on = withdrawn(GROUP, tomb("b"), WORKLOAD, pods=(MEMBER, finished("b", group="train")))
    assert lists(on.settle(seconds=PARTED)) == [((GROUP,), False)]
    assert on.reservations == {}


def test_a_reservation_stays_while_a_pod_outside_the_group_needs_its_tombstone() -> None:
    on = withdrawn(GROUP, tomb("b"), WORKLOAD, pods=(MEMBER, finished("b")))
    assert lists(on.settle(seconds=60)) == [((GROUP, tomb("b")), False)]
    assert on.reservations
    on.remove("b")
    assert lists(on.settle(seconds=60)) == [((GROUP,), False)]
    assert on.reservations == {}


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param((pending("a", group="train"),), id="pending"),
        pytest.param((finished("a", group="train"),), id="finished"),
    ],
)
def test_without_a_bound_pod_the_claim_is_fenced_beside_the_hold(pods: tuple[Pod, ...]) -> None:
    (reserved, _), *_ = lists(withdrawn(pods=pods).settle(seconds=PARTED + 1))
    assert WORKLOAD in reserved
    assert GROUP not in reserved


@pytest.mark.parametrize("pod", [running("a"), running("a", group="other")])
def test_a_bound_pod_of_no_listed_group_keeps_the_hold(pod: Pod) -> None:
    on = withdrawn(pods=(pod,))
    assert on.settle(seconds=600) == []
    assert on.reservations


def test_a_pod_that_only_the_cache_shows_bound_does_not_count() -> None:
    on = withdrawn()
    on.vanished_pods = {MEMBER.metadata.uid}
    assert on.settle(seconds=600) == []
    assert on.reservations


def test_a_group_that_is_gone_or_another_keeps_no_claim() -> None:
    on = withdrawn()
    on.vanished_groups = {GROUP.uid}
    assert on.settle(seconds=600) == []

    on = withdrawn()
    on.groups = {"train": pod_group(uid="uid-another-group")}
    assert [WORKLOAD in reserved for reserved, _ in lists(on.settle(seconds=600))] in ([], [True])
    assert on.reservations


def test_the_hold_stays_until_the_finalizer_of_the_group_is_gone() -> None:
    on = withdrawn()
    guarded = pod_group(made_by_claimctl=True, finalizers=(FINALIZER,))
    on.groups = {"train": guarded}
    assert on.settle(seconds=600) == []
    on.groups = {"train": pod_group(made_by_claimctl=True)}
    assert lists(on.settle(seconds=1)) == [((GROUP,), False)]


def test_a_reservation_that_goes_with_its_workload_is_not_withdrawn() -> None:
    on = withdrawn(owned=True)
    on.live_workloads = {"train": WorkloadState(WorkloadPhase.ABSENT)}
    assert on.settle(seconds=600) == []
    assert on.reservations


@pytest.mark.parametrize("pods", [(MEMBER,), (pending("b", group="train"),), ()])
def test_a_hold_that_has_left_never_comes_back(pods: tuple[Pod, ...]) -> None:
    """A controller was killed before the reservation went, or another one let it go just now."""
    on = withdrawn(GROUP, pods=pods)
    assert lists(on.settle(seconds=PARTED)) == []
    assert on.reservations == {}
