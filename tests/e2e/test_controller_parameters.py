"""Claims with opaque parameters, in every form in which clients write them.

An API server keeps parameters as the bytes that came. It writes a claim that it patches with
parameters of its own form, and refuses the patch if the bytes are others then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from claimctl.wire.claims import UNCHANGEABLE
from claimctl.wire.meta import find_condition
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    RESOURCECLAIMS,
)
from claimctl.wire.seams import Query, Response, Transport
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage

SORTED = '{"apiVersion":"g/v1","kind":"C","z":1}'
COMPACT = '{"kind":"C","apiVersion":"g/v1","z":1}'
SPACES = '{"apiVersion": "g/v1", "kind": "C", "z": 1}'
ESCAPED, UNESCAPED = '{"a":"\\u003cb\\u003e \\u0026"}', '{"a":"<b> &"}'

pytestmark = pytest.mark.cluster(HOLD_136)
can_be_changed = pytest.mark.parametrize("parameters", [SORTED, COMPACT, ESCAPED])
cannot_be_changed = pytest.mark.parametrize("parameters", [SPACES, UNESCAPED])


class CountingWrites:
    """A connection that counts the writes of claims."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.writes = 0

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        self.writes += method != "GET" and "/resourceclaims/" in path
        return await self._inner.send(method, path, query, headers, body)


def _with_parameters(body: Mapping[str, Any], parameters: str) -> bytes:
    """The JSON of a claim or template with parameters in just this form."""
    config = [{"opaque": {"driver": "gpu.example.com", "parameters": "HERE"}}]
    whole = json.loads(json.dumps(body))
    inner = whole["spec"].get("spec", whole["spec"])
    inner["devices"]["config"] = config
    return json.dumps(whole).replace('"HERE"', parameters).encode()


async def _send(stage: Stage, method: str, path: str, kind: str, body: bytes) -> int:
    path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/{path}"
    headers = {"content-type": f"application/{kind}"}
    return (await stage.embedded.transport().send(method, path, (), headers, body)).status


async def _post(stage: Stage, plural: str, body: bytes) -> None:
    assert await _send(stage, "POST", plural, "json", body) == 201


async def _use(stage: Stage) -> None:
    await stage.create(CLAIMRESERVATIONS, manifests.reservation(idleTimeoutSeconds=30))
    await stage.create(DEPLOYMENTS, manifests.deployment())


@can_be_changed
async def test_a_claim_is_held_and_released(stage: Stage, parameters: str) -> None:
    await stage.started()
    await _post(stage, "resourceclaims", _with_parameters(manifests.claim(), parameters))
    await _use(stage)
    await stage.until_condition("Reserved", "True", "Reserved", within=5)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_listed("deployments/train")
    await stage.quiet(20)
    assert await stage.allocated()
    await stage.until_released(within=30)


@cannot_be_changed
async def test_a_claim_that_no_client_can_change_is_named_and_left_alone(
    stage: Stage, parameters: str
) -> None:
    link = CountingWrites(stage.connect())
    await stage.started(transport=link)
    await _post(stage, "resourceclaims", _with_parameters(manifests.claim(), parameters))
    await _use(stage)
    await stage.until(stage.allocated, "the claim is allocated")
    await stage.until_condition("Reserved", "False", "ClaimCannotBeChanged", within=2)
    await stage.until_condition("Ready", "False", "ClaimCannotBeChanged", within=0)
    (one,) = await stage.reservations()
    told = find_condition(one.status.conditions, "Reserved")
    assert told is not None
    assert UNCHANGEABLE in told.message
    await stage.until_event("ClaimCannotBeChanged")
    assert link.writes == 1
    await stage.quiet(60)
    for replicas in (2, 0, 1):
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})
        await stage.quiet(60)
    assert link.writes == 1
    await stage.quiet(3600)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.quiet(600)
    assert link.writes == 2
    await stage.until_condition("Reserved", "False", "ClaimCannotBeChanged")


async def test_a_reservation_of_such_a_claim_goes_with_its_workload(stage: Stage) -> None:
    link = CountingWrites(stage.connect())
    await stage.started(transport=link)
    await _post(stage, "resourceclaims", _with_parameters(manifests.claim(), SPACES))
    await stage.create(DEPLOYMENTS, manifests.deployment(reserve="*"))
    await stage.until_condition("Reserved", "False", "ClaimCannotBeChanged")
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()

    async def gone() -> bool:
        return not await stage.reservations()

    await stage.until(gone, "the ClaimReservation is gone", within=120)
    assert link.writes == 1


async def test_the_same_claim_made_again_is_held(stage: Stage) -> None:
    await stage.started()
    await _post(stage, "resourceclaims", _with_parameters(manifests.claim(), SPACES))
    await _use(stage)
    await stage.until_condition("Reserved", "False", "ClaimCannotBeChanged")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released()
    await stage.delete(RESOURCECLAIMS, "slice")
    await _post(stage, "resourceclaims", _with_parameters(manifests.claim(), SORTED))
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
    await stage.until_condition("Reserved", "True", "Reserved")
    await stage.until_condition("Ready", "True", "Ready")


@pytest.mark.parametrize("parameters", [SORTED, COMPACT, SPACES, ESCAPED, UNESCAPED])
async def test_a_claim_that_claimctl_makes_can_be_changed(stage: Stage, parameters: str) -> None:
    await stage.started()
    body = _with_parameters(manifests.claim_template(), parameters)
    await _post(stage, "resourceclaimtemplates", body)
    made = manifests.reservation(resourceClaimTemplateName="template", idleTimeoutSeconds=30)
    await stage.create(CLAIMRESERVATIONS, made)
    await stage.create(DEPLOYMENTS, manifests.deployment())
    await stage.until_condition("Reserved", "True", "Reserved", within=5)
    patch, kind = b'{"metadata":{"annotations":{"a":"b"}}}', "strategic-merge-patch+json"
    assert await _send(stage, "PATCH", "resourceclaims/slice", kind, patch) == 200
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released(within=60)
