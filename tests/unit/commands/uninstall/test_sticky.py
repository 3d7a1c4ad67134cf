"""In which order sticky claims are taken out of a cluster, and what is said of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.commands.orphans.model import ScannedClaim
from claimctl.commands.uninstall.model import Scan
from claimctl.commands.uninstall.sticky import fate, left, may_lose_note, withdrawable
from claimctl.installation import STICKY_POLICY, PolicyBinding, PolicyBindingSpec
from claimctl.reservation.facts.snapshot import LiveList
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import ManagedObjectMeta, ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod, PodResourceClaim, PodSpec
from claimctl.wire.reservations import (
    STICKY_CLAIMS_ANNOTATION,
    ClaimReservation,
    ClaimReservationSpec,
    StickyClaim,
)
from claimctl.wire.resources import PODS
from claimctl.wire.unreadable import Unreadable
from tests.support.builders import NOW
from tests.support.builders import reservation as ordinary

NAME = "train-0.sts.gpu.big"
POD = Pod(
    metadata=ObjectMeta(
        name="train-0",
        namespace="ml",
        uid="uid-pod",
        annotations={STICKY_CLAIMS_ANNOTATION: "gpu=big"},
        owner_references=(
            OwnerReference(
                api_version="apps/v1", kind="StatefulSet", name="train", uid="s", controller=True
            ),
        ),
    ),
    spec=PodSpec(resource_claims=(PodResourceClaim(name="gpu", resource_claim_name=NAME),)),
)
STICKY = ClaimReservation(
    metadata=ObjectMeta(name="r", namespace="ml", uid="uid-r"),
    spec=ClaimReservationSpec(
        resource_claim_name=NAME, resource_claim_template_name="big", sticky=StickyClaim(ordinal=0)
    ),
)
OWNER = OwnerReference(
    api_version="claimctl.io/v1alpha1",
    kind="ClaimReservation",
    name="r",
    uid="uid-r",
    controller=True,
)
BINDING = PolicyBinding(
    metadata=ObjectMeta(name="claimctl-sticky-claims"),
    spec=PolicyBindingSpec(policy_name=STICKY_POLICY),
)
UNREADABLE = Unreadable(PODS, "no JSON", "ml", "x")


def claim(*pods: Pod, owners: tuple[OwnerReference, ...] = (OWNER,), hidden: bool = False) -> Scan:
    """A scan with the claim, and the pods that name it."""
    made = ResourceClaim(
        metadata=ManagedObjectMeta(name=NAME, namespace="ml", uid="c", owner_references=owners)
    )
    live = LiveList("1", pods, frozenset(), unreadable=(UNREADABLE,) if hidden else ())
    scanned = ScannedClaim(made, live, NOW, reserved=True)
    return Scan(NOW, reservations=(STICKY,), claims=(scanned,), noted=pods)


WITHOUT_CLAIM = Scan(NOW, reservations=(STICKY,), noted=(POD,))
OTHER = Scan(NOW, reservations=(ordinary(),))


@pytest.mark.parametrize(
    ("scan", "holds_go", "notes_go"),
    [
        (claim(POD), 1, 1),
        (claim(), 1, 0),
        (WITHOUT_CLAIM, 0, 0),  # a controller still makes the claim
        (Scan(NOW, reservations=(STICKY,)), 1, 0),
        (OTHER, 1, 0),
    ],
)
def test_nothing_of_sticky_claims_goes_before_their_policy_and_before_pods_have_them(
    scan: Scan, holds_go: int, notes_go: int
) -> None:
    assert len(list(withdrawable(scan))) == holds_go
    assert len(list(may_lose_note(scan))) == notes_go
    in_force = Scan(
        NOW,
        reservations=scan.reservations,
        claims=scan.claims,
        noted=scan.noted,
        bindings=(BINDING,),
    )
    assert len(list(withdrawable(in_force))) == (1 if scan is OTHER else 0)
    assert list(may_lose_note(in_force)) == []


def test_a_reservation_that_is_being_deleted_is_not_deleted_again() -> None:
    deleting = replace(STICKY, metadata=replace(STICKY.metadata, deletion_timestamp=NOW))
    assert list(withdrawable(Scan(NOW, reservations=(deleting,)))) == []


@pytest.mark.parametrize(
    ("scan", "words"),
    [
        (claim(POD), "its claim goes with the pods that name it: train-0"),
        (claim(), "its claim is deleted: no pod names it"),
        (claim(hidden=True), "its claim stays: pods cannot be read"),
        (claim(owners=()), ""),
        (WITHOUT_CLAIM, ""),
    ],
)
def test_what_becomes_of_the_claim_is_said_before(scan: Scan, words: str) -> None:
    assert fate(STICKY, scan) == words


@pytest.mark.parametrize(
    ("scan", "reason", "words"),
    [
        (claim(POD), "Annotated", "has the annotation claimctl.io/sticky-claims"),
        (WITHOUT_CLAIM, "WaitsForClaim", "(kubectl delete pod -n ml train-0)"),
        (Scan(NOW, bindings=(BINDING,)), "NamesClaims", "if it comes back, remove it"),
        (Scan(NOW, bindings=(BINDING,), scoped=True), "NamesClaims", "leave --namespace out"),
    ],
)
def test_what_is_left_says_what_to_do(scan: Scan, reason: str, words: str) -> None:
    [(_, _, why, message)] = left(scan)
    assert why == reason
    assert words in message
