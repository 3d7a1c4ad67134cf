"""What explain says about the devices of a claim: what drivers report and publish, no guess."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.commands.claims.device_notes import device_notes
from claimctl.wire.resources import RESOURCECLAIMS, RESOURCESLICES
from tests.support.claim_server import NAMESPACE, Server

READY, FAILED = "example.com/ready", "example.com/failed"
DEVICE = {"driver": "fabric.example.com", "pool": "n1", "device": "f0"}
RESULT = {**DEVICE, "request": "fab", "bindingConditions": [READY]}
RESULT |= {"bindingFailureConditions": [FAILED]}
TAINT = {"key": "example.com/sick", "value": "x", "effect": "NoExecute"}
TOLERATION = {"key": "example.com/sick", "operator": "Exists"}


def allocated(server: Server, result: dict[str, Any], **status: Any) -> None:
    request = {"name": "fab", "exactly": {"deviceClassName": "fabric"}}
    meta = {"name": "slice", "namespace": NAMESPACE}
    body = {"metadata": meta, "spec": {"devices": {"requests": [request]}}}
    server.admin.create("resourceclaims", body)
    allocation = {
        "devices": {"results": [result]},
        "allocationTimestamp": "2026-03-01T11:58:00Z",
    }
    patch = {"status": {"allocation": allocation, **status}}
    server.admin.patch("resourceclaims", NAMESPACE, "slice", patch, "status")


def published(server: Server, *taints: dict[str, str], generation: int = 1) -> None:
    spec = {
        "driver": DEVICE["driver"],
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": generation, "resourceSliceCount": 1},
        "devices": [{"name": "f0", "taints": list(taints)}],
    }
    body = {"metadata": {"name": f"slice-{generation}"}, "spec": spec}
    server.admin.create("resourceslices", body)


async def notes(server: Server) -> tuple[str, ...]:
    claim = await server.client.get(RESOURCECLAIMS, "slice", NAMESPACE)
    return device_notes(claim, (await server.client.list(RESOURCESLICES)).items)


def reported(type_: str, status: str = "True") -> dict[str, Any]:
    when = "2026-03-01T11:59:00Z"
    told = {"type": type_, "status": status, "reason": "Driver", "message": ""}
    return {"devices": [{**DEVICE, "conditions": [{**told, "lastTransitionTime": when}]}]}


WAITS = "n1/f0: a scheduler binds no pod before these binding conditions are true, and driver "
SINCE = "; it was allocated at 2026-03-01T11:58:00Z"


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ({}, f"{WAITS}fabric.example.com has reported nothing about {READY}{SINCE}"),
        (
            reported(READY, "False"),
            f"{WAITS}fabric.example.com does not report as true {READY}{SINCE}",
        ),
        (
            reported(READY),
            "n1/f0: driver fabric.example.com reports all binding conditions as true",
        ),
        (
            reported(FAILED),
            f"n1/f0: driver fabric.example.com reports that binding failed ({FAILED})",
        ),
    ],
)
async def test_binding_conditions_are_told_as_the_driver_reports_them(
    status: dict[str, Any], line: str
) -> None:
    server = Server.started()
    allocated(server, RESULT, **status)
    assert await notes(server) == (line,)


@pytest.mark.parametrize(
    ("tolerations", "effect", "end"),
    [
        ([TOLERATION], "NoExecute", ", and the claim's request tolerates that"),
        ([], "None", ", which keeps no pod away"),
    ],
)
async def test_a_taint_that_keeps_no_pod_away_is_a_note(
    tolerations: list[dict[str, str]], effect: str, end: str
) -> None:
    server = Server.started()
    allocated(server, {**DEVICE, "request": "fab", "tolerations": tolerations})
    published(server, {**TAINT, "effect": effect})
    text = f"n1/f0: driver fabric.example.com taints it with example.com/sick=x:{effect}{end}"
    assert await notes(server) == (text,)


async def test_only_the_newest_generation_of_a_pool_counts() -> None:
    server = Server.started()
    allocated(server, {**DEVICE, "request": "fab"})
    published(server, TAINT)
    published(server, generation=2)
    assert await notes(server) == ()


async def test_a_device_that_is_as_usual_and_a_claim_without_one_have_no_note() -> None:
    server = Server.started()
    allocated(server, {**DEVICE, "request": "fab"})
    published(server)
    assert await notes(server) == ()
    patch = {"status": {"allocation": None}}
    server.admin.patch("resourceclaims", NAMESPACE, "slice", patch, "status")
    assert await notes(server) == ()
