"""Claims with the pods that use them and what keeps them allocated."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl_reschedule.plan.claims import Claims, KnownClaim, shares_group
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.shapes.devices import DeviceClaim
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.devices import (
    HOLD,
    claim,
    entry,
    observed,
    pod,
    reservation,
    template,
)
from tests.support.builders import NOW, after

NAMED = {"name": "slice", "resourceClaimName": "slice"}
OWN = [{"name": "own", "resourceClaimTemplateName": "template"}]


def test_pods_that_use_a_claim_are_bound_and_not_done() -> None:
    pods = (
        pod("b", "slice"),
        pod("a", "slice"),
        pod("done", "slice", phase="Failed"),
        pod("waits", "slice", node=""),
    )
    claims = Claims(observed(claims=[claim("slice", "gpu-0")], pods=pods))
    (known,) = claims.all()
    assert [each.metadata.name for each in claims.users(known)] == ["a", "b"]


def test_all_three_places_that_name_a_claim_count() -> None:
    extended = {"extendedResourceClaimStatus": {"resourceClaimName": "extended"}}
    # the builder's own status of the generated claim would replace this one
    status = {**extended, "resourceClaimStatuses": [{"name": "own", "resourceClaimName": "own-1"}]}
    one = pod("a", "slice", spec={"resourceClaims": [NAMED, *OWN]}, status=status)
    names = ("slice", "own-1", "extended")
    claims = Claims(observed(claims=[claim(each) for each in names], pods=(one,)))
    assert {each.name for each in claims.of(one)} == set(names)
    asked = list(claims.named_by(one))
    assert [each.name for each in asked if isinstance(each, KnownClaim)] == list(names)


def test_a_pod_without_its_generated_claim_asks_by_the_template() -> None:
    waiting = pod("w", node="", spec={"resourceClaims": OWN})
    (asked,) = Claims(observed(claim_templates=[template()])).named_by(waiting)
    assert isinstance(asked, DeviceClaim)


def test_a_template_that_makes_no_claim_asks_for_nothing() -> None:
    """The status names no claim: the pod's entry needs none."""
    status = {"resourceClaimStatuses": [{"name": "own"}]}
    waiting = pod("w", node="", spec={"resourceClaims": OWN}, status=status)
    assert list(Claims(observed()).named_by(waiting)) == []


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        (pod("w", "slice", node=""), Ground.FIT_UNKNOWN),
        (pod("w", "going", node=""), Ground.CLAIM_UNREACHABLE),
        (pod("w", node="", spec={"resourceClaims": OWN}), Ground.FIT_UNKNOWN),
    ],
    ids=["a claim that was not read", "a claim that is being deleted", "a template"],
)
def test_what_cannot_be_used(waiting: SchedulingPod, expected: Ground) -> None:
    going = claim("going")
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp=NOW))
    (found,) = Claims(observed(claims=[going])).named_by(waiting)
    assert isinstance(found, Obstacle)
    assert found.reason is expected


def test_holds_of_reservations_are_told_from_those_of_others() -> None:
    other = {**HOLD, "uid": "uid-other"}
    held = claim("slice", "gpu-0", listed=[entry("a"), HOLD, other])
    claims = Claims(observed(claims=[held], reservations=[reservation()]))
    (known,) = claims.all()
    assert [each.uid for each in known.holders] == ["uid-train", "uid-other"]
    assert [each.uid for each in known.foreign_holders] == ["uid-other"]
    assert known.held


@pytest.mark.parametrize(("seconds", "counts"), [(299, True), (301, False)])
def test_the_longest_grace_of_a_claim_counts_for_its_ghosts(seconds: float, counts: bool) -> None:
    ghost = {"uid": "uid-x", "name": "x", "since": after(-seconds).isoformat()}
    short = reservation(name="short", forceDeletedPods=[ghost])
    short = replace(short, spec=replace(short.spec, force_deleted_pod_grace_seconds=1))
    long = replace(short, spec=replace(short.spec, force_deleted_pod_grace_seconds=300))
    seen = observed(claims=[claim("slice", "gpu-0")], reservations=[short, long])
    (known,) = Claims(seen).all()
    assert bool(known.ghosts) is counts


def test_a_ghost_on_record_counts_where_signs_of_life_decide() -> None:
    ghost = {"uid": "uid-x", "name": "x", "since": after(-900).isoformat()}
    seen = observed(
        claims=[claim("slice", "gpu-0")], reservations=[reservation(forceDeletedPods=[ghost])]
    )
    (known,) = Claims(seen).all()
    assert known.ghosts == ("x",)


def test_the_group_of_a_pod() -> None:
    assert shares_group(pod("a", group="g")) == ("ml", "g")
    assert shares_group(pod("a")) is None
