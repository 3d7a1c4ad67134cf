"""Which device classes a claim has or asks for, and which pods wait for such devices."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.commands.claims.device_classes import AskingClaim, device_classes, waiting_pods
from claimctl.wire.base import from_plain
from claimctl.wire.pods import Pod
from tests.support.builders import NOW

Json = dict[str, Any]
HAS = {"results": [{"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "x"}]}
CHOICE = {
    "name": "gpu",
    "firstAvailable": [
        {"name": "large", "deviceClassName": "large.example.com"},
        {"name": "small", "deviceClassName": "small.example.com"},
    ],
}


def request(device_class: str = "gpu.example.com", **fields: Any) -> Json:
    return {"name": "gpu", "exactly": {"deviceClassName": device_class, **fields}}


def claim(
    *requests: Json,
    name: str = "asked",
    namespace: str = "ml",
    allocated: Json | None = None,
    deleting: bool = False,
) -> AskingClaim:
    body: Json = {
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"devices": {"requests": list(requests or (request(),))}},
    }
    if allocated is not None:
        body["status"] = {"allocation": {"devices": allocated}}
    if deleting:
        body["metadata"]["deletionTimestamp"] = f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    return from_plain(body, AskingClaim)


HELD = claim(name="held", allocated=HAS)


def got(request_name: str, **fields: Any) -> Json:
    return {"results": [{**HAS["results"][0], "request": request_name, **fields}]}


@pytest.mark.parametrize(
    ("shown", "classes"),
    [
        pytest.param(claim(), {"gpu.example.com"}, id="asks"),
        pytest.param(
            claim({"name": "gpu", "deviceClassName": "gpu.example.com"}),
            {"gpu.example.com"},
            id="asks, in v1beta1",
        ),
        pytest.param(
            claim(CHOICE), {"large.example.com", "small.example.com"}, id="asks for one of two"
        ),
        pytest.param(
            claim(CHOICE, allocated=got("gpu/small")), {"small.example.com"}, id="has one of two"
        ),
        pytest.param(
            claim(request(), {**request("nic.example.com"), "name": "nic"}, allocated=HAS),
            {"gpu.example.com"},
            id="has devices for one request only",
        ),
        pytest.param(claim(request(adminAccess=True)), set(), id="watches with admin access"),
    ],
)
def test_the_device_classes_of_a_claim(shown: AskingClaim, classes: set[str]) -> None:
    assert device_classes(shown) == classes


def pod(
    name: str = "late", *, namespace: str = "ml", reason: str = "Unschedulable", **status: Any
) -> Pod:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "lastTransitionTime": f"{NOW:%Y-%m-%dT%H:%M:%SZ}",
    }
    body = {
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "asked"}]},
        "status": {"phase": "Pending", "conditions": [condition], **status},
    }
    return from_plain(body, Pod)


@pytest.mark.parametrize(
    ("asked", "user", "waits"),
    [
        pytest.param(claim(), pod(), True, id="no node fits, the claim has no devices"),
        pytest.param(
            claim(namespace="other"), pod(namespace="other"), True, id="in another namespace"
        ),
        pytest.param(claim(CHOICE, request()), pod(), True, id="the class is one of several"),
        pytest.param(claim(namespace="other"), pod(), False, id="it names another claim"),
        pytest.param(
            claim(request("nic.example.com")), pod(), False, id="it asks for another class"
        ),
        pytest.param(claim(allocated=HAS), pod(), False, id="its claim has devices"),
        pytest.param(claim(deleting=True), pod(), False, id="its claim is being deleted"),
        pytest.param(claim(), pod(reason="SchedulingGated"), False, id="it is gated"),
        pytest.param(claim(), pod(nominatedNodeName="n1"), False, id="it is being bound"),
        pytest.param(claim(), pod(phase="Failed"), False, id="it is done"),
        pytest.param(claim(), pod(conditions=[]), False, id="no scheduler has seen it"),
    ],
)
def test_a_pod_waits_for_devices_that_another_claim_has(
    asked: AskingClaim, user: Pod, waits: bool
) -> None:
    names = (f"{user.metadata.namespace}/late",) if waits else ()
    assert waiting_pods([HELD, asked], [user])["held"] == names


def test_every_waiting_pod_is_named_once_in_order() -> None:
    both = claim(request(), CHOICE)
    two = claim(
        CHOICE,
        request(),
        name="held",
        allocated={"results": [*got("gpu/large")["results"], *HAS["results"]]},
    )
    assert waiting_pods([two, both], [pod("b"), pod("a"), pod("c")])["held"] == (
        "ml/a",
        "ml/b",
        "ml/c",
    )
