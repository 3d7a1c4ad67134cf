"""Which entries of claimctl go from a claim that pods or others keep allocated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.commands.orphans.model import Answer, OwnerState, ScannedClaim
from claimctl.commands.uninstall.holds import without_hold, without_old_tombstones
from claimctl.reservation.facts.snapshot import LiveList, Rules
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import FINALIZER
from claimctl.wire.resources import PODS
from claimctl.wire.unreadable import Unreadable
from tests.support.builders import (
    NOW,
    claim,
    deployment_ref,
    finished,
    group_ref,
    pending,
    pod_group,
    pod_ref,
    running,
    tomb,
    written_by_claimctl,
)

HOLD = deployment_ref()
VM = Reference(api_group="kubevirt.io", resource="virtualmachines", name="vm", uid="v")
RULES = Rules(dialect="hold")
GROUPS = Rules(dialect="podgroup")
GUARD = Reference(api_group="claimctl.io", resource="guards", name="slice", uid="uid-slice")
ONLY = pod_group(made_by_claimctl=True)
GUARDED = pod_group(made_by_claimctl=True, finalizers=(FINALIZER,))


def held(*entries: Reference, shared: bool = False) -> ResourceClaim:
    return written_by_claimctl(claim(HOLD, *entries, shared=shared), [HOLD.uid])


def scanned(
    on: ResourceClaim, *pods: Pod, state: OwnerState = OwnerState.ALIVE, reserved: bool = False
) -> ScannedClaim:
    live = LiveList("", pods, frozenset(each.metadata.uid for each in pods))
    return ScannedClaim(on, live, NOW, {HOLD.uid: Answer(state)}, reserved, believing=True)


BESIDE = scanned(held(pod_ref("a")), running("a"))


@pytest.mark.parametrize("state", [OwnerState.ALIVE, OwnerState.GONE, OwnerState.REPLACED])
def test_a_hold_goes_beside_a_running_pod(state: OwnerState) -> None:
    found = without_hold(scanned(held(pod_ref("a")), running("a"), state=state), (), RULES)
    assert found is not None
    assert (found.reserved_for, found.deallocate) == ((pod_ref("a"),), False)
    assert found.resource_version == "10"


@pytest.mark.parametrize(
    ("on", "groups", "rules", "left"),
    [
        (scanned(held(VM)), (), RULES, (VM,)),
        # The scheduler frees a claim that lists only the pod for which it finds no node.
        (scanned(held(pod_ref("a")), pending("a")), (), RULES, (pod_ref("a"),)),
        (scanned(held(VM, pod_ref("a")), running("a")), (), RULES, (VM, pod_ref("a"))),
        (
            scanned(held(group_ref()), running("a", group="train")),
            (ONLY,),
            GROUPS,
            (group_ref(),),
        ),
    ],
)
def test_what_stays_when_the_hold_goes(
    on: ScannedClaim, groups: tuple[PodGroup, ...], rules: Rules, left: tuple[Reference, ...]
) -> None:
    found = without_hold(on, groups, rules)
    assert found is not None
    assert found.reserved_for == left


def test_a_hold_goes_beside_a_pending_pod_that_a_scheduler_listed() -> None:
    """The scheduler binds the pod, or frees the claim that lists nobody else."""
    found = without_hold(scanned(held(pod_ref("a")), pending("a")), (), RULES)
    assert found is not None
    assert found.reserved_for == (pod_ref("a"),)


@pytest.mark.parametrize(
    ("on", "groups", "rules"),
    [
        # No pod keeps the claim: `claimctl doctor orphans` frees it.
        (scanned(held()), (), RULES),
        (scanned(held(pod_ref("a"))), (), RULES),
        (scanned(held(pod_ref("a")), finished("a")), (), RULES),
        # The hold is not claimctl's, or nothing proves it, or somebody still asks for it.
        (replace(BESIDE, believing=False), (), RULES),
        (scanned(claim(HOLD, pod_ref("a")), running("a")), (), RULES),
        (replace(BESIDE, reserved=True), (), RULES),
        (replace(BESIDE, answers={HOLD.uid: Answer(OwnerState.RESERVING)}), (), RULES),
        (replace(BESIDE, answers={}), (), RULES),
        # The pods run because of the hold, or cannot be known.
        (scanned(held(shared=True), running("a")), (), Rules(dialect="native")),
        (BESIDE, (), Rules(dialect="hold", kcm_looks_at_claims=False)),
        (scanned(held(group_ref()), running("a", group="train")), (GUARDED,), GROUPS),
        (scanned(held(group_ref()), running("a", group="train")), (), GROUPS),
    ],
)
def test_when_a_hold_has_to_stay(
    on: ScannedClaim, groups: tuple[PodGroup, ...], rules: Rules
) -> None:
    assert without_hold(on, groups, rules) is None


def test_pods_that_were_listed_ahead_leave_first_and_the_hold_after_the_binding_time() -> None:
    on = written_by_claimctl(claim(HOLD, pod_ref("a"), pod_ref("b")), [HOLD.uid, "uid-b"])
    waiting = (running("a"), pending("b"))
    first = without_hold(scanned(on, *waiting), (), RULES, 0.0)
    assert first is not None
    assert first.reserved_for == (HOLD, pod_ref("a"))
    closed = scanned(held(pod_ref("a")), *waiting)
    assert without_hold(closed, (), RULES, 59.0) is None
    last = without_hold(closed, (), RULES, 60.0)
    assert last is not None
    assert last.reserved_for == (pod_ref("a"),)


def test_an_unreadable_pod_keeps_the_hold() -> None:
    live = replace(BESIDE.live, unreadable=(Unreadable(PODS, "bad", "train", "x"),))
    assert without_hold(replace(BESIDE, live=live), (), RULES) is None


@pytest.mark.parametrize(
    ("entries", "pods", "left"),
    [
        ((pod_ref("a"), tomb("f")), (running("a"),), (pod_ref("a"),)),
        ((pod_ref("a"), tomb("f")), (running("a"), finished("f")), None),
        ((pod_ref("a"), tomb("f"), VM), (running("a"),), (pod_ref("a"), VM)),
        ((pod_ref("a"), tomb("f")), (pending("a"),), None),
        # The guard of a run that takes waiting pods out.
        ((pod_ref("a"), GUARD), (running("a"),), None),
        ((pod_ref("a"), GUARD, tomb("f")), (running("a"),), (pod_ref("a"), GUARD)),
        ((tomb("f"),), (), None),
        ((tomb("f"), VM), (), None),
        ((pod_ref("a"),), (running("a"),), None),
    ],
)
def test_tombstones_go_after_their_pods_beside_a_running_one(
    entries: tuple[Reference, ...], pods: tuple[Pod, ...], left: tuple[Reference, ...] | None
) -> None:
    found = without_old_tombstones(scanned(claim(*entries), *pods))
    assert (found.reserved_for if found else None) == left
    assert without_old_tombstones(scanned(claim(*entries), *pods, reserved=True)) is None
