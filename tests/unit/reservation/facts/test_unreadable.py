"""What cannot be read: what it may concern, and that nothing is decided about that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from claimctl.downgrade.expansion import (
    Expanded,
    ExpansionObstacle,
    ExpansionRefused,
    Unchanged,
    expand,
)
from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import ClearReleaseRequest, WriteStatus
from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.facts.unreadable import (
    claims_named,
    may_concern,
    may_freeze,
)
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.reservations import ReleaseProgress
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DOWNGRADEPLANS,
    JOBS,
    NODES,
    PODGROUPS,
    PODS,
    REPLICASETS,
    RESOURCECLAIMS,
    RESOURCESLICES,
    Resource,
)
from claimctl.wire.unreadable import Unreadable
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    after,
    claim,
    group_ref,
    pod_ref,
    reservation,
    running,
)
from tests.support.claim_cases import (
    ACTIVE,
    GONE,
    IDLE,
    NATIVE,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)

UNREADABLE = "UnreadableObject"
PODGROUP = Rules("podgroup")


def bad(
    resource: Resource[Any], name: str = "bad", namespace: str = NAMESPACE, **parts: Any
) -> Unreadable:
    placed = {"namespace": namespace} if resource.namespaced else {}
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "3", **placed}
    raw = json.dumps({"metadata": meta, **parts}).encode()
    return Unreadable.of(resource, raw, "Expected `int`, got `str` - at `$.metadata.generation`")


def uses(*claims: Any) -> dict[str, Any]:
    return {"resourceClaims": [{"name": "c", "resourceClaimName": each} for each in claims]}


def template(*claims: Any) -> dict[str, Any]:
    return {"template": {"spec": uses(*claims)}}


STATUSES = {
    "resourceClaimStatuses": [{"name": "c", "resourceClaimName": "made"}],
    "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
}


@pytest.mark.parametrize(
    ("found", "names"),
    [
        (bad(PODS), set()),
        (bad(PODS, spec=uses("a", "b")), {"a", "b"}),
        (bad(PODS, spec=uses("a"), status=STATUSES), {"a", "made", "extended"}),
        (bad(PODS, spec=uses("a") | {"nodeName": 5}), {"a"}),
        (bad(PODS, spec=uses(None)), set()),
        (bad(PODS, spec=uses(5)), None),
        (bad(PODS, spec=5), None),
        (bad(PODS, spec=uses("a"), status=5), None),
        (bad(PODS, spec=uses("a"), status={"resourceClaimStatuses": {}}), None),
        (bad(PODS, status={"extendedResourceClaimStatus": "x"}), None),
        (bad(REPLICASETS, spec=template("a")), {"a"}),
        (bad(REPLICASETS, spec=template("a") | {"replicas": "many"}), {"a"}),
        (bad(REPLICASETS, spec={"template": 5}), None),
        (bad(CLAIMRESERVATIONS, spec={"resourceClaimName": "a", "workloadRef": 5}), {"a"}),
        (bad(CLAIMRESERVATIONS, spec={"resourceClaimName": 5}), None),
        (bad(CLAIMRESERVATIONS), None),
        (bad(PODGROUPS, spec=uses("a")), {"a"}),
        (bad(PODGROUPS, spec=[]), None),
        (bad(RESOURCECLAIMS, "a"), {"a"}),
        (bad(JOBS, spec=template("a")), set()),
        (Unreadable.of(PODS, b"5", "?"), None),
        (Unreadable.of(RESOURCECLAIMS, b"5", "?"), None),
    ],
)
def test_the_claims_that_an_object_names_are_read_by_themselves(
    found: Unreadable, names: set[str] | None
) -> None:
    assert claims_named(found) == names


@pytest.mark.parametrize(
    ("found", "concerned"),
    [
        (bad(PODS, spec=uses(CLAIM)), True),
        (bad(PODS, spec=uses(CLAIM), namespace="other"), False),
        (bad(PODS, spec=uses("other")), False),
        (bad(PODS, spec=5), True),
        (bad(PODS, spec=5, namespace="other"), False),
        (Unreadable.of(PODS, b"5", "?"), True),
        (bad(RESOURCECLAIMS, CLAIM), True),
        (bad(RESOURCECLAIMS, "other"), False),
        (bad(PODGROUPS, "train"), True),
        (bad(PODGROUPS, "unlisted"), False),
        (bad(NODES, "node-0"), False),
        (bad(RESOURCESLICES, spec=5), False),
    ],
)
def test_what_may_concern_a_claim(found: Unreadable, concerned: bool) -> None:
    assert may_concern(found, NAMESPACE, CLAIM, claim(group_ref())) == concerned


@pytest.mark.parametrize(
    ("plan", "freezes"),
    [
        (bad(DOWNGRADEPLANS), True),
        (bad(DOWNGRADEPLANS, spec={"namespaces": [NAMESPACE]}), True),
        (bad(DOWNGRADEPLANS, spec={"namespaces": ["other"]}), False),
        (bad(DOWNGRADEPLANS, spec={"namespaces": 5}), True),
        (bad(PODS), False),
    ],
)
def test_a_plan_that_cannot_be_read_freezes_all_that_it_may_mean(
    plan: Unreadable, freezes: bool
) -> None:
    assert may_freeze(plan, NAMESPACE) == freezes


BLOCKERS = [
    bad(PODS, spec=uses(CLAIM)),
    bad(PODS, spec=5),
    Unreadable.of(PODS, b"5", "?"),
    bad(REPLICASETS, spec=template(CLAIM)),
    bad(REPLICASETS, spec=5),
    bad(CLAIMRESERVATIONS, spec=5),
    bad(PODGROUPS, spec=uses(CLAIM)),
]


@pytest.mark.parametrize("found", BLOCKERS, ids=str)
@pytest.mark.parametrize("rules", [Rules("hold"), NATIVE, PODGROUP], ids=lambda r: r.dialect)
def test_what_may_use_hold_or_come_to_use_the_claim_blocks_its_release(
    found: Unreadable, rules: Rules
) -> None:
    on = stage(claim(WORKLOAD, shared=rules is NATIVE, created_for=WORKLOAD), GONE, rules)
    on.unreadable.append(found)
    assert on.settle(seconds=100_000) == []
    assert condition(on, "Released") == ("False", UNREADABLE)
    assert found.describe() in on.reservations["train-slice"][0].status.conditions[-1].message
    on.unreadable.clear()
    assert lists(on.settle(seconds=600))[-1] == ((), True)


@pytest.mark.parametrize("rules", [Rules("hold"), NATIVE, PODGROUP], ids=lambda r: r.dialect)
def test_a_pod_that_only_the_live_list_shows_unreadable_blocks_it_as_well(rules: Rules) -> None:
    on = stage(claim(WORKLOAD, shared=rules is NATIVE, created_for=WORKLOAD), GONE, rules)
    on.live_unreadable.append(bad(PODS, spec=uses(CLAIM)))
    assert not [each for each in lists(on.settle(seconds=8)) if each[1]]
    assert on.claim is not None
    assert on.claim.status.allocation is not None


def test_one_that_comes_between_fence_and_deallocation_keeps_the_record_of_the_release() -> None:
    progress = ReleaseProgress(
        step="Fenced", reason="WorkloadEnded", since=after(0), claim_uid="uid-slice"
    )
    reserved = reservation(status=held_status(release=progress))
    on = stage(claim(shared=True, created_for=WORKLOAD), GONE, NATIVE, reserved=reserved)
    on.unreadable.append(bad(PODS, spec=uses(CLAIM)))
    assert on.settle(seconds=600) == []
    assert on.reservations["train-slice"][0].status.release is not None


def test_holds_are_kept_and_made_beside_a_pod_that_cannot_be_read() -> None:
    on = stage(claim(pod_ref("a")), ACTIVE, recorded=False)
    on.put(running("a"))
    on.unreadable.append(bad(PODS, spec=uses(CLAIM)))
    assert lists(on.settle()) == [((pod_ref("a"), WORKLOAD), False)]


LEFT_ALONE = [
    bad(RESOURCECLAIMS, CLAIM),
    Unreadable.of(RESOURCECLAIMS, b"{}", "?"),
    bad(CLAIMRESERVATIONS, spec={"resourceClaimName": CLAIM}),
]


@pytest.mark.parametrize("found", LEFT_ALONE, ids=str)
@pytest.mark.parametrize("seen", [True, False], ids=["as it was", "never seen"])
@pytest.mark.parametrize("deleting", [True, False], ids=["withdrawn", "reserved"])
@pytest.mark.parametrize("workload", [ACTIVE, IDLE, GONE], ids=["active", "idle", "gone"])
def test_a_claim_is_left_alone_when_it_or_its_reservation_cannot_be_read(
    found: Unreadable, seen: bool, deleting: bool, workload: WorkloadState
) -> None:
    status = held_status(release=ReleaseProgress(step="Intent", claim_uid="uid-slice"))
    made = reservation(status=status, deleting=deleting, resource_claim_template_name="template")
    on = stage(claim(WORKLOAD) if seen else None, workload, reserved=made)
    on.unreadable.append(found)
    assert on.settle(seconds=100_000) == []
    told = on.reservations["train-slice"][0].status
    assert condition(on, "Ready") == ("False", UNREADABLE)
    assert replace(told, conditions=()) == status


def test_the_reservation_that_cannot_be_read_is_not_written_to() -> None:
    on = stage(claim(WORKLOAD), IDLE)
    found = bad(CLAIMRESERVATIONS, "train-slice", spec={"resourceClaimName": CLAIM})
    on.unreadable.append(found)
    assert decide(on.snapshot()).write is None
    assert [one.reason for one in decide(on.snapshot()).blockers] == [UNREADABLE]
    on.reservations["second"] = (reservation("second"), IDLE)
    write = decide(on.snapshot()).write
    assert isinstance(write, WriteStatus)
    assert write.reservation.metadata.name == "second"


def test_what_was_asked_for_waits_while_something_cannot_be_read() -> None:
    asked = reservation(annotations={"claimctl.io/release": "uid-slice"})
    on = stage(claim(allocated=False), IDLE, reserved=asked)
    on.unreadable.append(bad(PODS, spec=uses(CLAIM)))
    assert not any(isinstance(each, ClearReleaseRequest) for each in on.settle(seconds=60))


UNREAD = WorkloadState(
    WorkloadPhase.UNREADABLE, "uid-train", confirmed=True, problem="Deployment: bad"
)


@pytest.mark.parametrize("uid", ["uid-train", ""])
def test_what_is_held_for_a_workload_that_cannot_be_read_stays_held(uid: str) -> None:
    state = WorkloadState(WorkloadPhase.UNREADABLE, uid, confirmed=True, problem="Deployment: bad")
    on = stage(claim(WORKLOAD), state)
    assert on.settle(seconds=100_000) == []
    assert condition(on, "Reserved") == ("True", "Reserved")
    message = on.reservations["train-slice"][0].status.conditions[-1].message
    assert message == "Deployment: bad"


def test_nothing_is_held_anew_for_a_workload_that_cannot_be_read() -> None:
    on = stage(claim(pod_ref("a")), UNREAD, recorded=False)
    on.put(running("a"))
    assert on.settle(seconds=600) == []
    assert condition(on, "Reserved") == ("False", UNREADABLE)
    assert condition(on, "Ready") == ("False", UNREADABLE)


@pytest.mark.parametrize(
    ("found", "refused"),
    [
        (bad(PODS, spec=uses(CLAIM)), True),
        (bad(PODS, spec=5), True),
        (bad(PODS, "listed", spec=uses("other")), True),
        (bad(PODS, spec=uses("other")), False),
    ],
)
def test_a_claim_that_an_unreadable_pod_may_use_is_not_expanded(
    found: Unreadable, refused: bool
) -> None:
    held = claim(WORKLOAD, pod_ref("listed"), created_for=WORKLOAD)
    expansion = expand(held, [running("a")], unreadable=[found])
    if refused:
        assert isinstance(expansion, ExpansionRefused)
        assert expansion.obstacle is ExpansionObstacle.UNREADABLE_POD
    else:
        assert isinstance(expansion, Expanded)


def test_pods_alone_are_no_reason_to_refuse_unless_one_may_be_missing() -> None:
    by_pods, found = claim(pod_ref("bad")), bad(PODS, spec=uses(CLAIM))
    assert isinstance(expand(by_pods, [], unreadable=[found]), Unchanged)
    by_pods = claim(pod_ref("a"))
    pods = [running("a")]
    assert isinstance(expand(by_pods, pods, unreadable=[found]), ExpansionRefused)
