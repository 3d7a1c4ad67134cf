"""The one judgement of what is wrong with a claim, as a table of snapshots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.judgement import judged, judgement
from claimctl.commands.claims.matters import Matter
from claimctl.commands.claims.places import Places
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.nodes import Node
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation, DowngradePlan, DowngradePlanSpec

Json = dict[str, Any]
NOW = datetime.fromisoformat("2026-03-01T12:00:00Z")
SINCE = "2026-03-01T11:58:00Z"
NOTHING = Places(None, None)


def claim(*, allocated: bool = True, listed: tuple[Json, ...] = ()) -> ResourceClaim:
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    device = {"request": "gpu", "driver": "d.example.com", "pool": "n1", "device": "gpu-0"}
    allocation = {"devices": {"results": [device]}, "nodeSelector": terms}
    status = {"allocation": allocation, "reservedFor": listed} if allocated else {}
    meta = {"name": "slice", "namespace": "ml", "uid": "c"}
    return convert({"metadata": meta, "status": status}, ResourceClaim)


def pod(made: str = SINCE, node: str = "", prepared: str = "False", **spec: Any) -> Pod:
    """
    Args:
        prepared: whether its kubelet has prepared its devices; '' if it has reported nothing.
    """
    named = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}], **spec}
    ready = {"type": "PodReadyToStartContainers", "status": prepared}
    status: Json = {"phase": "Pending", "conditions": [ready] if node and prepared else []}
    meta = {"name": "p", "namespace": "ml", "uid": "p", "creationTimestamp": made}
    return convert({"metadata": meta, "spec": {**named, "nodeName": node}, "status": status}, Pod)


def reservation(annotations: Json | None = None, **conditions: tuple[str, str]) -> ClaimReservation:
    """With conditions as (status, reason)."""
    reported = [
        {"type": type_, "status": status, "reason": reason, "message": "why"}
        for type_, (status, reason) in conditions.items()
    ]
    return convert(
        {
            "metadata": {"name": "train", "namespace": "ml", "annotations": annotations or {}},
            "spec": {"resourceClaimName": "slice"},
            "status": {"claimUID": "c", "conditions": reported},
        },
        ClaimReservation,
    )


def cordoned() -> Places:
    node = convert({"metadata": {"name": "n1"}, "spec": {"unschedulable": True}}, Node)
    return Places(None, {"n1": node})


def found(*pods: Pod, made: ClaimReservation | None = None, **more: Any) -> tuple[Matter, ...]:
    view = ClaimView(claim(**more), pods, (made,) if made else ())
    return judgement(view, NOTHING, NOW)


@pytest.mark.parametrize(
    ("matters", "reason", "text", "step"),
    [
        (lambda: found(pod()), "PodsWait",
         "1 pod waits since 2026-03-01T11:58:00Z (2m): p",
         "Pod p finds no node; see why: claimctl explain pod/p -n ml"),
        (lambda: found(pod(), allocated=False), "PodsWait", "1 pod waits",
         "Pod p waits for its devices; see why: claimctl explain pod/p -n ml"),
        (lambda: found(pod(node="n1")), "PodsWait", "1 pod waits",
         "Pod p has a node and does not start; see why: claimctl explain pod/p -n ml"),
        (lambda: found(pod(node="n1", prepared="")), "PodsWait", "1 pod waits",
         "Pod p has a node and does not start; see why: claimctl explain pod/p -n ml"),
        (lambda: found(made=reservation(Reserved=("False", "FrozenForDowngrade"))),
         "FrozenForDowngrade", "not held, frozen for the downgrade: its devices are lost when",
         "Do not scale its workload to 0 now. The next step: claimctl downgrade status"),
        (lambda: found(made=reservation(Ready=("False", "FightingWriter"))), "FightingWriter",
         "not ready (FightingWriter): why", "names the writers"),
        (lambda: found(made=reservation(Released=("False", "ForceDeletedPods"))),
         "ForceDeletedPods", "why", "See until when it waits: claimctl explain slice -n ml"),
        (lambda: found(made=reservation({"claimctl.io/release": "c"})), "ReleaseRequested",
         "the controller has not begun it", "claimctl release --cancel slice -n ml"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_a_line_and_a_step(
    matters: Callable[[], tuple[Matter, ...]], reason: str, text: str, step: str
) -> None:
    (only,) = matters()
    assert only.reason == reason
    assert text in only.text
    assert step in only.steps[0]


@pytest.mark.parametrize(
    "matters",
    [
        lambda: found(),
        lambda: found(pod(made="2026-03-01T11:59:51Z")),
        lambda: found(pod(node="n1", prepared="True")),
        lambda: found(pod(schedulingGates=[{"name": "later"}])),
        lambda: found(made=reservation(Ready=("True", "Ready"), Released=("False", "Held"))),
        lambda: found(made=reservation(Reserved=("False", "NotAllocated")), allocated=False),
        lambda: found(made=reservation(Released=("False", "Settling"))),
        lambda: found(made=reservation({"claimctl.io/release": "an earlier claim"})),
    ],
)
def test_what_is_well_or_takes_a_moment_has_no_line(
    matters: Callable[[], tuple[Matter, ...]],
) -> None:
    assert matters() == ()


def test_pods_that_wait_for_a_known_cause_need_no_further_look() -> None:
    made = judged(ClaimView(claim(), (pod(),), (reservation(),)), cordoned(), NOW)
    cause, waits = made.matters
    assert (cause.reason, waits.reason, waits.steps) == ("NodeCordoned", "PodsWait", ())
    assert "kubectl uncordon n1 or claimctl release slice -n ml" in cause.steps[0]
    assert made.shown_state == "Allocated (NodeCordoned)"


@pytest.mark.parametrize(
    ("reason", "kinds"),
    [("Settling", []), ("ForceDeletedPods", ["NodeCordoned", "ForceDeletedPods"])],
)
def test_where_devices_are_is_no_matter_for_a_release_that_is_soon_over(
    reason: str, kinds: list[str]
) -> None:
    made = reservation(Released=("False", reason))
    matters = judgement(ClaimView(claim(), (), (made,)), cordoned(), NOW)
    assert [matter.reason for matter in matters] == kinds


@given(age=st.integers(0, 60), bound=st.booleans(), gated=st.booleans(), allocated=st.booleans())
def test_no_pod_that_has_waited_is_without_a_line(
    age: int, bound: bool, gated: bool, allocated: bool
) -> None:
    made = f"{NOW - timedelta(seconds=age):%Y-%m-%dT%H:%M:%SZ}"
    gates = [{"name": "later"}] if gated and not bound else []
    shown = found(pod(made, "n1" if bound else "", schedulingGates=gates), allocated=allocated)
    assert bool(shown) == (age >= 10 and not gates)


FROZEN = reservation(
    Ready=("False", "FrozenForDowngrade"), Reserved=("False", "FrozenForDowngrade")
)
DOWNGRADE, UPGRADE = DowngradePlan(), DowngradePlan(spec=DowngradePlanSpec(upgrade_to="1.37"))
HOLD = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": "d"}
GANG = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": "g"}
POD = {"resource": "pods", "name": "a", "uid": "a"}


@pytest.mark.parametrize(
    ("listed", "plans", "made", "what"),
    [
        ((POD,), (DOWNGRADE,), reservation(), "downgrade"),
        ((POD,), (UPGRADE,), reservation(), "upgrade"),
        ((), (DOWNGRADE,), reservation(), "downgrade"),
        ((GANG,), (DOWNGRADE,), reservation(), "downgrade"),
        ((POD, HOLD), (DOWNGRADE,), reservation(), ""),
        ((POD,), (), FROZEN, ""),
        ((POD,), None, FROZEN, "downgrade"),
        ((POD,), None, reservation(), ""),
        ((POD,), (DOWNGRADE,), None, ""),
    ],
    ids=[
        "a downgrade",
        "an upgrade",
        "nobody is listed",
        "a PodGroup holds nothing",
        "its workload still holds it",
        "the plan is gone",
        "only the condition may be read",
        "nothing is known",
        "nobody wants a hold",
    ],
)
def test_a_claim_that_a_plan_froze_is_not_held(
    listed: tuple[dict[str, str], ...],
    plans: tuple[DowngradePlan, ...] | None,
    made: ClaimReservation | None,
    what: str,
) -> None:
    view = ClaimView(claim(listed=listed), (), (made,) if made else ())
    matters = judgement(view, replace(NOTHING, plans=plans), NOW)
    assert [it.text.partition(":")[0] for it in matters] == (
        [f"not held, frozen for the {what}"] if what else []
    )
