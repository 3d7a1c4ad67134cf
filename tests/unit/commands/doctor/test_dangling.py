"""Which entries whose objects are gone are wanted, leave, or are left."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.commands.doctor.dangling import Dangling, dangling, still_listed
from claimctl.commands.doctor.model import ObservedCluster
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus
from tests.support.builders import claim, deployment_ref, pod_ref, reservation
from tests.support.claim_cases import held_status, status_with

HOLD, POD = deployment_ref(), pod_ref("gone")
LISTED = claim(HOLD, POD)
RELEASING = replace(status_with(("Released", "False", "Settling")), claim_uid="uid-slice")


THERE = {("", "pods"): frozenset({"uid-other"}), ("apps", "deployments"): frozenset[str]()}
"""Neither the Deployment nor the pod is there."""


def seen(
    reservations: tuple[ClaimReservation, ...] = (), in_use: frozenset[str] = frozenset()
) -> ObservedCluster:
    return ObservedCluster("hold", reservations=reservations, in_use=in_use, uids=THERE)


def reserved(status: ClaimReservationStatus, **spec: str) -> tuple[ClaimReservation, ...]:
    made = reservation(status=status)
    return (replace(made, spec=replace(made.spec, **spec)),)


USED = frozenset({LISTED.metadata.uid})
CASES = {
    "nobody reserves it": (seen(), Dangling((), (), (HOLD, POD))),
    "reserved and unused": (seen(reserved(held_status())), Dangling((), (), (HOLD, POD))),
    "its last pods end": (
        seen(reserved(held_status()), USED),
        Dangling((), (HOLD,), (POD,)),
    ),
    "a hold of nobody beside a pod": (seen(in_use=USED), Dangling((), (), (HOLD, POD))),
    "it is released": (seen(reserved(RELEASING)), Dangling((), (HOLD, POD), ())),
    "a policy keeps it": (
        seen(reserved(held_status(), retention_policy="Manual")),
        Dangling((HOLD,), (), (POD,)),
    ),
    "not listed": (ObservedCluster("hold"), Dangling((), (), ())),
}


@pytest.mark.parametrize(("cluster", "sorted_"), CASES.values(), ids=CASES)
def test_each_entry_is_in_the_part_of_who_answers_for_it(
    cluster: ObservedCluster, sorted_: Dangling
) -> None:
    assert dangling(LISTED, cluster) == sorted_


@pytest.mark.parametrize(
    ("now", "left"),
    [
        (None, ()),
        (replace(LISTED, metadata=replace(LISTED.metadata, uid="another")), ()),
        (claim(HOLD, pod_ref("new")), (HOLD,)),
    ],
    ids=["gone", "another claim", "another list"],
)
def test_what_a_list_still_has(now: ResourceClaim | None, left: tuple[object, ...]) -> None:
    assert still_listed(LISTED, now) == left
