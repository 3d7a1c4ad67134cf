"""Which claims and workloads an object that cannot be read may concern."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.options import Preset

from claimctl.controller.unreadable import UnreadableObjects
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    Resource,
)
from claimctl.wire.unreadable import Unreadable
from tests.support.builders import CLAIM, NAMESPACE
from tests.support.counting_server import CountingServer, server
from tests.unit.controller.cluster import filled, furnish

RESERVED = f"{NAMESPACE}/{CLAIM}"
BESIDE, ELSEWHERE = f"{NAMESPACE}/beside", "default/elsewhere"
UNREADABLE = b'{"spec": 5}'


def furnished() -> CountingServer:
    """A reserved claim of a Deployment, and two claims without ClaimReservation."""
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
    furnish(made)
    request = {"name": "tpu", "exactly": {"deviceClassName": "tpu.example.com"}}
    for key in (BESIDE, ELSEWHERE):
        namespace, name = key.split("/")
        meta = {"name": name, "namespace": namespace}
        made.create(
            "resourceclaims", {"metadata": meta, "spec": {"devices": {"requests": [request]}}}
        )
    return made


def unreadable(
    resource: Resource[Any], namespace: str = "", name: str = "", raw: bytes = UNREADABLE
) -> Unreadable:
    return Unreadable(resource, "?", namespace, name, "uid", "7", raw)


@pytest.mark.parametrize(
    ("found", "claims"),
    [
        pytest.param(unreadable(NODES, "", "node-0"), [], id="a node"),
        pytest.param(
            unreadable(DEPLOYMENTS, NAMESPACE, "train"), [RESERVED], id="the reserved workload"
        ),
        pytest.param(unreadable(DEPLOYMENTS, NAMESPACE, "other"), [], id="another workload"),
        pytest.param(unreadable(DEPLOYMENTS, "default", "train"), [], id="the name elsewhere"),
        pytest.param(unreadable(DEPLOYMENTS, NAMESPACE), [RESERVED], id="a nameless workload"),
        pytest.param(unreadable(DEPLOYMENTS), [RESERVED], id="a workload of unknown namespace"),
        pytest.param(
            unreadable(PODS, NAMESPACE, "a"), [BESIDE, RESERVED], id="a pod: all of its namespace"
        ),
        pytest.param(
            unreadable(PODS), [ELSEWHERE, BESIDE, RESERVED], id="a pod of unknown namespace"
        ),
        pytest.param(
            unreadable(PODS, NAMESPACE, "a", b"{}"), [], id="a pod that names no claim for sure"
        ),
    ],
)
async def test_the_claims_that_an_unreadable_object_may_concern(
    found: Unreadable, claims: list[str]
) -> None:
    objects = UnreadableObjects(await filled(furnished()))
    assert [str(key) for key in objects.claims(found)] == claims


@pytest.mark.parametrize(
    ("found", "concerned"),
    [
        pytest.param(unreadable(DEPLOYMENTS, NAMESPACE, "a"), True, id="of its kind"),
        pytest.param(unreadable(CLAIMRESERVATIONS, NAMESPACE, "a"), True, id="a ClaimReservation"),
        pytest.param(unreadable(JOBS, NAMESPACE, "a"), False, id="of another kind"),
        pytest.param(unreadable(DEPLOYMENTS, "default", "a"), False, id="in another namespace"),
        pytest.param(unreadable(PODS, NAMESPACE, "a"), False, id="a pod"),
    ],
)
async def test_the_workloads_that_an_unreadable_object_may_concern(
    found: Unreadable, concerned: bool
) -> None:
    objects = UnreadableObjects(await filled(furnished()))
    assert [key.name for key in objects.workloads(found)] == ["train"] * concerned
