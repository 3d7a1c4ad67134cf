"""Workload references become pod references, or the claim is left alone with a reason."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from claimctl.downgrade.expansion import (
    Expanded,
    Expansion,
    ExpansionObstacle,
    ExpansionRefused,
    Unchanged,
    expand,
    uids_on_record,
)
from claimctl.reservation.facts.references import LIMIT, tombstone
from claimctl.wire.claims import (
    AllocationResult,
    Reference,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from claimctl.wire.meta import (
    ManagedFieldsEntry,
    ManagedObjectMeta,
    ObjectMeta,
    OwnerReference,
)
from claimctl.wire.pods import Pod, PodResourceClaim, PodSchedulingGroup, PodSpec, PodStatus
from claimctl.wire.reservations import (
    ClaimReservation,
    ClaimReservationSpec,
    ClaimReservationStatus,
    WorkloadRef,
)

TRAIN = Reference(api_group="apps", resource="deployments", name="train", uid="d-1")
GROUP = Reference(api_group="scheduling.k8s.io", resource="podgroups", name="gang", uid="g-1")
MACHINE = Reference(api_group="kubevirt.io", resource="virtualmachines", name="vm", uid="v-1")
SHARED = AllocationResult(reserved_for_any_pod=True)


def claim(
    *entries: Reference,
    allocation: AllocationResult | None = SHARED,
    created_for: Reference | None = TRAIN,
    **meta: Any,
) -> ResourceClaim:
    return ResourceClaim(
        metadata=ManagedObjectMeta(name="slice", namespace="ml", uid="c-1", **meta),
        spec=ResourceClaimSpec(reserved_for=created_for),
        status=ResourceClaimStatus(allocation=allocation, reserved_for=entries),
    )


def pod(number: int, *, node: str = "node-1", phase: str = "Running") -> Pod:
    return Pod(
        metadata=ObjectMeta(name=f"train-{number:03}", namespace="ml", uid=f"p-{number}"),
        spec=PodSpec(
            node_name=node,
            resource_claims=(PodResourceClaim(name="gpu", resource_claim_name="slice"),),
        ),
        status=PodStatus(phase=phase),
    )


def ref(number: int) -> Reference:
    return Reference(resource="pods", name=f"train-{number:03}", uid=f"p-{number}")


def obstacle(expansion: Expansion) -> ExpansionObstacle:
    assert isinstance(expansion, ExpansionRefused)
    return expansion.obstacle


def test_every_bound_consumer_is_listed_in_the_order_of_names() -> None:
    assert expand(claim(TRAIN), [pod(2), pod(1)]) == Expanded((ref(1), ref(2)), (TRAIN,))


def test_the_limit_itself_can_be_expressed() -> None:
    expansion = expand(claim(TRAIN), [*map(pod, range(LIMIT))])
    assert isinstance(expansion, Expanded)
    assert expansion.pods == LIMIT


@pytest.mark.parametrize(
    ("group", "resource", "command"),
    [
        ("apps", "deployments", "kubectl scale -n ml deployments/x --replicas=256"),
        ("apps", "statefulsets", "kubectl scale -n ml statefulsets/x --replicas=256"),
        (
            "batch",
            "jobs",
            """kubectl patch -n ml jobs/x --type=merge -p '{"spec":{"parallelism":256}}'""",
        ),
        ("scheduling.k8s.io", "podgroups", ""),
    ],
)
def test_more_pods_than_the_limit_are_refused_with_the_choices(
    group: str, resource: str, command: str
) -> None:
    holder = Reference(api_group=group, resource=resource, name="x", uid="d-1")
    held = claim(holder, created_for=holder)
    refusal = expand(held, [*map(pod, range(LIMIT + 2))])
    assert isinstance(refusal, ExpansionRefused)
    assert (refusal.obstacle, refusal.pods) == (ExpansionObstacle.TOO_MANY_CONSUMERS, LIMIT + 2)
    parts = (
        f"258 pods of {resource}/x use the claim, 2 more than the 256 that it can list",
        f"scale down to 256 pods{f' ({command})' if command else ''}, or use several claims",
        "or leave the claim as it is (--skip ml/slice): its pods then fail once the feature is off",
    )
    assert all(part in refusal.message for part in parts), refusal.message


def test_pods_that_are_listed_already_keep_their_places() -> None:
    expansion = expand(claim(ref(9), TRAIN, ref(1)), [*map(pod, (1, 2, 9))])
    assert expansion == Expanded((ref(9), ref(1), ref(2)), (TRAIN,))


def test_a_listed_pod_without_a_node_stays_since_it_may_be_bound_at_any_moment() -> None:
    expansion = expand(claim(TRAIN, ref(1)), [pod(1, node="", phase="Pending")])
    assert expansion == Expanded((ref(1),), (TRAIN,))


PENDING = pod(2, node="", phase="Pending")


def of_group(pod: Pod, name: str) -> Pod:
    group = PodSchedulingGroup(pod_group_name=name)
    return replace(pod, spec=replace(pod.spec, scheduling_group=group))


def test_a_pod_without_a_node_that_is_not_listed_is_left_to_the_scheduler() -> None:
    listed_one_by_one = claim(TRAIN, allocation=AllocationResult())
    assert expand(listed_one_by_one, [pod(1), PENDING]) == Expanded((ref(1),), (TRAIN,))


@pytest.mark.parametrize(
    ("held", "pending", "listed"),
    [
        (claim(TRAIN), PENDING, True),
        (claim(GROUP, allocation=AllocationResult()), of_group(PENDING, "gang"), True),
        (claim(GROUP, allocation=AllocationResult()), of_group(PENDING, "other"), False),
        (claim(GROUP, allocation=AllocationResult()), PENDING, False),
    ],
    ids=["any pod may use it", "its group is listed", "of another group", "of no group"],
)
def test_a_pod_that_a_scheduler_may_be_binding_without_listing_it_is_listed(
    held: ResourceClaim, pending: Pod, listed: bool
) -> None:
    expansion = expand(held, [pod(1), pending])
    assert isinstance(expansion, Expanded)
    assert (ref(2) in expansion.reserved_for) is listed


def test_a_pod_that_is_being_bound_is_listed_also_when_its_group_was_taken_out_before() -> None:
    held, pods = claim(ref(1), allocation=AllocationResult()), [pod(1), of_group(PENDING, "gang")]
    assert isinstance(expand(held, pods), Unchanged)
    assert expand(held, pods, opened_by=[GROUP]) == Expanded((ref(1), ref(2)), ())


def test_pods_that_are_gone_or_done_go_from_the_list() -> None:
    expansion = expand(claim(TRAIN, ref(1), ref(2), ref(3)), [pod(1), pod(2, phase="Succeeded")])
    assert expansion == Expanded((ref(1),), (TRAIN,))


def test_a_tombstone_stays_while_its_pod_is_there() -> None:
    marks = tombstone(ref(1)), tombstone(ref(7))
    expansion = expand(claim(TRAIN, *marks, ref(2)), [pod(1, phase="Succeeded"), pod(2)])
    assert expansion == Expanded((marks[0], ref(2)), (TRAIN,))


def test_tombstones_go_where_no_controller_looks_after_them() -> None:
    listed = claim(TRAIN, tombstone(ref(1)), ref(2))
    expansion = expand(listed, [pod(1, phase="Succeeded"), pod(2)], tombstones=False)
    assert expansion == Expanded((ref(2),), (TRAIN,))


def test_a_tombstone_gives_way_when_living_pods_need_every_place() -> None:
    pods = [pod(999, phase="Succeeded"), *map(pod, range(LIMIT))]
    expansion = expand(claim(TRAIN, tombstone(ref(999))), pods)
    assert isinstance(expansion, Expanded)
    assert (len(expansion.reserved_for), expansion.pods) == (LIMIT, LIMIT)


def test_a_claim_without_allocation_has_nothing_to_expand() -> None:
    assert expand(claim(allocation=None), [pod(1)]) == Unchanged()


def test_a_pod_that_came_while_the_list_was_written_is_added_afterwards() -> None:
    expansion = expand(claim(ref(1), ref(8)), [pod(1), pod(2)])
    assert expansion == Expanded((ref(1), ref(8), ref(2)), ())


def test_looking_again_at_a_complete_list_changes_nothing() -> None:
    assert expand(claim(ref(1), ref(8)), [pod(1)]) == Unchanged(pods=2, by_pods=True)


def test_a_group_is_expanded_like_a_workload_where_the_claim_is_its_pods_own() -> None:
    expansion = expand(claim(GROUP, TRAIN, allocation=AllocationResult()), [pod(1)])
    assert expansion == Expanded((ref(1),), (GROUP, TRAIN))


def test_what_the_claim_was_made_for_may_be_of_any_kind() -> None:
    made = claim(MACHINE, created_for=MACHINE)
    assert expand(made, [pod(1)]) == Expanded((ref(1),), (MACHINE,))


def test_the_claim_was_made_for_one_incarnation() -> None:
    later = Reference(api_group="apps", resource="deployments", name="train", uid="d-2")
    assert obstacle(expand(claim(later), [pod(1)])) is ExpansionObstacle.UNKNOWN_REFERENCE


def test_managed_fields_do_not_make_a_reference_claimctls_own() -> None:
    fields = b'{"f:status":{"f:reservedFor":{"k:{\\"uid\\":\\"d-1\\"}":{}}}}'
    entry = ManagedFieldsEntry(manager="claimctl", subresource="status", fields_v1=Raw(fields))
    held = claim(TRAIN, created_for=None, managed_fields=(entry,))
    assert obstacle(expand(held, [pod(1)])) is ExpansionObstacle.UNKNOWN_REFERENCE


def test_what_a_reservation_has_on_record_is_claimctls_own() -> None:
    held = claim(TRAIN, created_for=None)
    assert obstacle(expand(held, [pod(1)])) is ExpansionObstacle.UNKNOWN_REFERENCE
    assert expand(held, [pod(1)], on_record={"d-1"}) == Expanded((ref(1),), (TRAIN,))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"claim_uid": "c-1", "reserved_for": TRAIN}, {"d-1"}, id="on this claim"),
        pytest.param({"claim_uid": "c-0", "reserved_for": TRAIN}, set(), id="on an earlier one"),
        pytest.param({"claim_uid": "c-1"}, set(), id="nothing reserved"),
    ],
)
def test_a_record_counts_for_the_claim_it_was_made_on(
    status: dict[str, Any], expected: set[str]
) -> None:
    one = ClaimReservation(
        metadata=ObjectMeta(namespace="ml"),
        spec=ClaimReservationSpec(resource_claim_name="slice"),
        status=ClaimReservationStatus(**status),
    )
    assert uids_on_record(claim(TRAIN), [one]) == expected


@pytest.mark.parametrize(
    ("claim_name", "workload", "writer", "expected"),
    [
        pytest.param("slice", "train", "claimctl", {"d-1"}, id="named and written"),
        pytest.param("slice", "train", "other", set(), id="written by another client"),
        pytest.param("slice", "serve", "claimctl", set(), id="another workload"),
        pytest.param("other", "train", "claimctl", set(), id="another claim"),
    ],
)
def test_a_reference_is_claimctls_own_before_the_status_records_it(
    claim_name: str, workload: str, writer: str, expected: set[str]
) -> None:
    fields = b'{"f:status":{"f:reservedFor":{"k:{\\"uid\\":\\"d-1\\"}":{}}}}'
    entry = ManagedFieldsEntry(manager=writer, subresource="status", fields_v1=Raw(fields))
    held = claim(TRAIN, created_for=None, managed_fields=(entry,))
    spec = ClaimReservationSpec(
        resource_claim_name=claim_name,
        workload_ref=WorkloadRef(api_group="apps", kind="Deployment", name=workload),
    )
    one = ClaimReservation(metadata=ObjectMeta(namespace="ml"), spec=spec)
    assert uids_on_record(held, [one]) == expected


def test_a_hold_of_somebody_else_is_named_and_left_also_where_any_pod_may_use_the_claim() -> None:
    assert expand(claim(MACHINE, TRAIN), [pod(1)]) == ExpansionRefused(
        ExpansionObstacle.UNKNOWN_REFERENCE,
        "held by virtualmachines/vm, which no ClaimReservation records, which is not a PodGroup, "
        "and not what the claim was created for: its owner must remove it",
        1,
    )


def test_a_listed_pod_that_lives_stays_although_it_does_not_name_the_claim() -> None:
    other = Pod(metadata=ObjectMeta(name="guest", namespace="ml", uid="g"), status=PodStatus())
    guest = Reference(resource="pods", name="guest", uid="g")
    assert expand(claim(guest, TRAIN), [other, pod(1)]) == Expanded((guest, ref(1)), (TRAIN,))


def test_a_pod_whose_name_another_one_has_by_now_is_gone() -> None:
    again = Reference(resource="pods", name="train-001", uid="p-0")
    assert expand(claim(again, TRAIN), [pod(1)]) == Expanded((ref(1),), (TRAIN,))


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param(
            claim(
                GROUP,
                owner_references=(
                    OwnerReference(
                        api_version="scheduling.k8s.io/v1alpha2",
                        kind="PodGroup",
                        name="gang",
                        controller=True,
                    ),
                ),
            ),
            ExpansionObstacle.GENERATED_FOR_POD_GROUP,
            id="a claim generated from a group's template",
        ),
        pytest.param(
            claim(TRAIN, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)),
            ExpansionObstacle.BEING_DELETED,
            id="a claim that is being deleted takes no new pods",
        ),
        pytest.param(
            claim(MACHINE, TRAIN, allocation=AllocationResult()),
            ExpansionObstacle.UNKNOWN_REFERENCE,
            id="somebody else's hold is not claimctl's to take away",
        ),
    ],
)
def test_what_cannot_be_expressed_is_refused(
    case: ResourceClaim, expected: ExpansionObstacle
) -> None:
    assert obstacle(expand(case, [pod(1)])) is expected


def test_an_idle_claim_is_refused_since_an_empty_list_would_leak_its_devices() -> None:
    refused = expand(claim(TRAIN, ref(1)), [pod(1, phase="Failed")])
    assert refused == ExpansionRefused(
        ExpansionObstacle.NO_CONSUMER,
        "held by deployments/train, and no pod runs; with an empty list, its devices would stay "
        "allocated for good: scale up, or release the claim (claimctl release slice -n ml)",
    )
