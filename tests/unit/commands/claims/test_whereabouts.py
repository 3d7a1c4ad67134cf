"""What keeps pods from a claim's devices: one table for devices and one for nodes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.matters import Matter
from claimctl.commands.claims.places import Places
from claimctl.commands.claims.whereabouts import whereabouts
from claimctl.wire.claims import ResourceClaim, ResourceSlice
from claimctl.wire.nodes import Node
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation

Json = dict[str, Any]

DRIVER = "gpu.example.com"
SICK = {"key": "sick", "value": "79", "effect": "NoSchedule"}
GIVE_UP = "claimctl gives the claim up by itself; to do it now: claimctl release slice -n ml"
NEVER = (
    "reallocationPolicy is Never, or reallocateTimeoutSeconds is null, so claimctl never gives the "
    "claim up; "
)
CORDONED: Json = {"spec": {"unschedulable": True}}


def claim(**result: Any) -> ResourceClaim:
    device = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0", **result}
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    allocation = {
        "devices": {"results": [device]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    meta = {"name": "slice", "namespace": "ml", "uid": "c"}
    return convert({"metadata": meta, "status": {"allocation": allocation}}, ResourceClaim)


def piece(*devices: Json, count: int = 1, driver: str = DRIVER) -> ResourceSlice:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": count}
    spec = {"driver": driver, "pool": pool, "nodeName": "n1", "devices": list(devices)}
    return convert({"metadata": {"name": f"s-{count}"}, "spec": spec}, ResourceSlice)


def node(name: str = "n1", **parts: Any) -> Node:
    return convert({"metadata": {"name": name}, **parts}, Node)


def pod(*, bound: bool, started: bool = True, **spec: Any) -> Pod:
    ready = {"type": "PodReadyToStartContainers", "status": str(started)}
    status: Json = {"phase": "Running" if started else "Pending", "conditions": [ready]}
    named = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}], **spec}
    meta = {"name": "p", "namespace": "ml", "uid": "p"}
    if bound:
        named["nodeName"] = "n1"
    else:
        status = {"phase": "Pending"}
    return convert({"metadata": meta, "spec": named, "status": status}, Pod)


def held(seconds: int | None = 60) -> ClaimReservation:
    spec = {"resourceClaimName": "slice", "reallocateTimeoutSeconds": seconds}
    meta = {"name": "train", "namespace": "ml"}
    return convert({"metadata": meta, "spec": spec}, ClaimReservation)


def found(
    *slices: ResourceSlice,
    nodes: tuple[Node, ...] = (node(),),
    pods: tuple[Pod, ...] = (),
    reservations: tuple[ClaimReservation, ...] = (held(),),
    of: ResourceClaim | None = None,
) -> tuple[Matter, ...]:
    places = Places(slices, {each.metadata.name: each for each in nodes})
    return whereabouts(ClaimView(of or claim(), pods, reservations), places)


GPU_0, GPU_1 = {"name": "gpu-0"}, {"name": "gpu-1"}
AWAY = (
    f"Start driver {DRIVER} there, if it stays away; this shows where it is: "
    f"kubectl get resourceslices --field-selector spec.driver={DRIVER}"
)
TAINTED = {**GPU_0, "taints": [SICK]}
TOLERATE = "To keep a device with a taint, tolerate the taint in the claim's request"


@pytest.mark.parametrize(
    ("slices", "reason", "text", "steps"),
    [
        ((piece(GPU_1),), "DeviceGone", f"driver {DRIVER} does not publish it any more",
         (GIVE_UP,)),
        ((piece(TAINTED),), "DeviceTainted",
         f"driver {DRIVER} taints it with sick=79:NoSchedule, and the claim's request does not "
         "tolerate that: no new allocation gets it", (GIVE_UP, TOLERATE)),
        ((), "DriverAway",
         f"its driver {DRIVER} publishes nothing for pool n1: it may be away", (AWAY,)),
        ((piece(GPU_0, driver="other"),), "DriverAway",
         f"its driver {DRIVER} publishes nothing for pool n1: it may be away", (AWAY,)),
        ((piece(GPU_1, count=2),), "DriverAway",
         f"its driver {DRIVER} publishes pool n1 in part, and without it", (AWAY,)),
    ],
)  # fmt: skip
def test_a_device_that_pods_cannot_get_is_named_with_its_step(
    slices: tuple[ResourceSlice, ...], reason: str, text: str, steps: tuple[str, ...]
) -> None:
    (only,) = found(*slices)
    assert (only.reason, str(only), only.steps) == (reason, f"n1/gpu-0: {text}", steps)


@pytest.mark.parametrize(
    ("pods", "reservations", "step"),
    [
        ((pod(bound=True, started=False),), (held(),),
         "Delete what can never start; it was bound before its device went, and the next pod gets "
         "another device: kubectl -n ml delete pod p"),
        ((pod(bound=True),), (held(),),
         "For another device, let all its pods end: scale its workload to 0 and back"),
        ((), (held(None),), f"{NEVER}give it up: claimctl release slice -n ml"),
    ],
)  # fmt: skip
def test_the_step_for_a_device_that_is_gone_depends_on_its_pods(
    pods: tuple[Pod, ...], reservations: tuple[ClaimReservation, ...], step: str
) -> None:
    (only,) = found(piece(GPU_1), pods=pods, reservations=reservations)
    assert only.steps == (step,)


UNREADY: Json = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
EITHER = "kubectl uncordon n1 or claimctl release slice -n ml"


@pytest.mark.parametrize(
    ("nodes", "pods", "seconds", "reason", "step"),
    [
        ((node(**CORDONED),), (), 60, "NodeCordoned",
         f"claimctl gives the claim up as soon as a pod waits for the node; or: {EITHER}"),
        ((node(**CORDONED),), (), None, "NodeCordoned", f"{NEVER}{EITHER}"),
        ((node(**CORDONED),), (pod(bound=True),), 60, "NodeCordoned",
         f"The next pods need the node, or another device: {EITHER}"),
        ((node("n2"),), (), 60, "NodeGone", GIVE_UP),
        ((node("n2"),), (), None, "NodeGone",
         f"{NEVER}give it up: claimctl release slice -n ml"),
        ((node(**UNREADY),), (), 60, "NodeNotReady",
         "See why node n1 is not ready: kubectl describe node n1"),
        ((node(spec={"taints": [TAINT]}),), (pod(bound=False),), 60, "NodeTainted",
         "Tolerate the taints in the pods, or take them off: kubectl describe node n1"),
    ],
)  # fmt: skip
def test_a_node_that_takes_no_pods_is_named_with_its_step(
    nodes: tuple[Node, ...], pods: tuple[Pod, ...], seconds: int | None, reason: str, step: str
) -> None:
    (only,) = found(piece(GPU_0), nodes=nodes, pods=pods, reservations=(held(seconds),))
    assert (only.reason, only.steps[0], only.is_of_node) == (reason, step, True)


OUT = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}


@pytest.mark.parametrize(
    ("nodes", "pods"),
    [
        ((node(),), ()),
        ((), ()),
        ((node(spec={"taints": [TAINT]}),), ()),
        ((node(**CORDONED),), (pod(bound=True, tolerations=[OUT]),)),
    ],
    ids=["as usual", "no nodes at all", "its pods are not known", "its pods tolerate it"],
)
def test_what_keeps_no_pod_away_is_not_named(
    nodes: tuple[Node, ...], pods: tuple[Pod, ...]
) -> None:
    assert found(piece(GPU_0), nodes=nodes, pods=pods) == ()


def test_a_driver_that_hides_the_devices_in_use_is_not_taken_for_away() -> None:
    hidden = claim(driver="dra.net")
    assert found(piece(GPU_1, driver="dra.net"), of=hidden) == ()


def test_one_node_that_takes_pods_is_enough() -> None:
    wide = convert({"metadata": {"name": "slice"}, "status": {"allocation": {"devices": {}}}},
                  ResourceClaim)  # fmt: skip
    assert found(nodes=(node(**CORDONED), node("n2")), of=wide) == ()


@pytest.mark.parametrize("bound", [True, False])
def test_a_claim_on_a_node_that_is_not_ready_is_given_up_where_no_pod_runs(bound: bool) -> None:
    unready: Json = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    (only,) = found(piece(GPU_0), nodes=(node(**unready),), pods=(pod(bound=bound),))
    assert only.reason == "NodeNotReady"
    see = "See why node n1 is not ready: kubectl describe node n1"
    assert only.steps == ((see,) if bound else (see, GIVE_UP))


def test_what_may_not_be_listed_is_not_known() -> None:
    nothing = Places(None, None)
    assert whereabouts(ClaimView(claim(), (), (held(),)), nothing) == ()


def test_without_an_allocation_nothing_is_missing() -> None:
    free = convert({"metadata": {"name": "slice"}}, ResourceClaim)
    assert found(of=free) == ()


def test_a_device_that_is_kept_for_ever_is_given_up_beside_the_deletion_of_its_pod() -> None:
    pods = (pod(bound=True, started=False),)
    (only,) = found(piece(GPU_1), pods=pods, reservations=(held(None),))
    assert only.steps == (
        "Delete what can never start; it was bound before its device went: "
        "kubectl -n ml delete pod p",
        f"{NEVER}give it up: claimctl release slice -n ml",
    )


def test_a_claim_that_is_being_released_is_not_to_be_given_up_again() -> None:
    said = {"type": "Released", "status": "False", "reason": "ForceDeletedPods", "message": ""}
    status = {"claimUID": "c", "conditions": [said]}
    body = {"metadata": {"name": "train"}, "spec": {"resourceClaimName": "slice"}}
    made = convert({**body, "status": status}, ClaimReservation)
    (only,) = found(piece(GPU_1), reservations=(made,))
    assert (only.reason, only.steps) == ("DeviceGone", ())
