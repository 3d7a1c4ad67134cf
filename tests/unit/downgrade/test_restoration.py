"""Which replaced references return to a claim's list, and why others do not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from claimctl.downgrade.restoration import (
    Hindrance,
    Restoration,
    Unrestored,
    decide_restoration,
    explained,
)
from claimctl.reservation.facts.references import LIMIT
from claimctl.wire.claims import (
    AllocationResult,
    Reference,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from claimctl.wire.meta import ManagedObjectMeta, ObjectMeta
from claimctl.wire.pods import Pod, PodResourceClaim, PodSpec, PodStatus
from claimctl.wire.reservations import DowngradedClaim

TRAIN = Reference(api_group="apps", resource="deployments", name="train", uid="d-1")
OTHER = Reference(api_group="apps", resource="deployments", name="other", uid="d-2")
GANG = Reference(api_group="scheduling.k8s.io", resource="podgroups", name="gang", uid="g-1")
MACHINE = Reference(api_group="kubevirt.io", resource="virtualmachines", name="vm", uid="v-1")
POD = Reference(resource="pods", name="a", uid="p-1")
THERE = {each.uid: True for each in (TRAIN, OTHER, GANG, MACHINE)}
SHARED = AllocationResult(reserved_for_any_pod=True)


def claim(
    *entries: Reference,
    created_for: Reference | None = TRAIN,
    allocation: AllocationResult | None = SHARED,
    **meta: Any,
) -> ResourceClaim:
    return ResourceClaim(
        metadata=ManagedObjectMeta(name="slice", namespace="ml", uid="c-1", **meta),
        spec=ResourceClaimSpec(reserved_for=created_for),
        status=ResourceClaimStatus(allocation=allocation, reserved_for=entries or (POD,)),
    )


def pod(*, node: str = "n1", phase: str = "Running", uses: str = "slice") -> Pod:
    resource_claims = (PodResourceClaim(name="gpu", resource_claim_name=uses),)
    return Pod(
        metadata=ObjectMeta(name="a", namespace="ml", uid="p-1"),
        spec=PodSpec(node_name=node, resource_claims=resource_claims),
        status=PodStatus(phase=phase),
    )


def replaced(*references: Reference) -> DowngradedClaim:
    return DowngradedClaim(namespace="ml", name="slice", replaced_references=references)


def test_a_reference_returns_while_a_pod_uses_the_claim() -> None:
    found = decide_restoration(claim(), replaced(TRAIN), [pod()], THERE, "native")
    assert found == Restoration(add=(TRAIN,))


def test_a_listed_reference_needs_nothing_more() -> None:
    found = decide_restoration(claim(POD, TRAIN), replaced(TRAIN), [pod()], {}, "hold")
    assert found == Restoration()


def test_without_an_allocation_there_is_nothing_to_restore() -> None:
    assert (
        decide_restoration(claim(allocation=None), replaced(TRAIN), [pod()], THERE, "native")
        is None
    )


NOW = datetime(2026, 1, 1, tzinfo=UTC)
FULL = tuple(Reference(resource="pods", name=f"p-{n}", uid=f"p-{n}") for n in range(LIMIT))


@pytest.mark.parametrize(
    ("subject", "reference", "pods", "there", "dialect", "hindrance"),
    [
        (claim(), TRAIN, [pod()], {"d-1": False}, "native", Hindrance.WORKLOAD_GONE),
        (claim(), TRAIN, [pod()], {"d-1": None}, "native", Hindrance.NOT_VERIFIED),
        (claim(), TRAIN, [pod()], {}, "native", Hindrance.NOT_VERIFIED),
        (claim(deletion_timestamp=NOW), TRAIN, [pod()], THERE, "native", Hindrance.BEING_DELETED),
        (claim(), TRAIN, [], THERE, "native", Hindrance.NO_CONSUMER),
        (claim(), TRAIN, [pod(node="")], THERE, "native", Hindrance.NO_CONSUMER),
        (claim(), TRAIN, [pod(phase="Succeeded")], THERE, "native", Hindrance.NO_CONSUMER),
        (claim(), TRAIN, [pod(uses="else")], THERE, "native", Hindrance.NO_CONSUMER),
        (claim(), TRAIN, [pod()], THERE, "hold", Hindrance.FEATURE_OFF),
        (claim(), TRAIN, [pod()], THERE, "podgroup", Hindrance.FEATURE_OFF),
        (claim(), GANG, [pod()], THERE, "hold", Hindrance.FEATURE_OFF),
        (claim(), GANG, [pod()], THERE, "native", Hindrance.FEATURE_OFF),
        (claim(), OTHER, [pod()], THERE, "native", Hindrance.NOT_ALLOWED),
        (claim(*FULL), TRAIN, [pod()], THERE, "native", Hindrance.LIST_FULL),
    ],
)
def test_a_reference_does_not_return(
    subject: ResourceClaim,
    reference: Reference,
    pods: list[Pod],
    there: Mapping[str, bool | None],
    dialect: str,
    hindrance: Hindrance,
) -> None:
    found = decide_restoration(subject, replaced(reference), pods, there, dialect)
    assert found == Restoration(left=(Unrestored(reference, hindrance),))


@pytest.mark.parametrize(
    ("reference", "dialect"), [(GANG, "podgroup"), (MACHINE, "hold"), (OTHER, "podgroup")]
)
def test_a_reference_returns_in_the_dialect_that_has_it(reference: Reference, dialect: str) -> None:
    found = decide_restoration(
        claim(created_for=None), replaced(reference), [pod()], THERE, dialect
    )
    assert found == Restoration(add=(reference,))


def test_references_return_as_far_as_there_is_room() -> None:
    subject = claim(*FULL[1:], created_for=None)
    found = decide_restoration(subject, replaced(OTHER, MACHINE), [pod()], THERE, "hold")
    assert found == Restoration(add=(OTHER,), left=(Unrestored(MACHINE, Hindrance.LIST_FULL),))


def test_each_reference_is_explained_by_its_name() -> None:
    left = [Unrestored(TRAIN, Hindrance.WORKLOAD_GONE), Unrestored(GANG, Hindrance.FEATURE_OFF)]
    assert explained(left) == (
        "deployments/train: the workload does not exist any more; podgroups/gang: the feature is "
        "still off: switch it on in every component first"
    )
