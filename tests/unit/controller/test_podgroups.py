"""The reconciler of PodGroups against a server: what it asks before it lets a group go."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
import yaml

from claimctl.controller.caches.informers import Caches
from claimctl.controller.keys import GroupKey
from claimctl.controller.live_reads import Investigator
from claimctl.controller.observations.observations import Observations
from claimctl.controller.reconcilers.pod_group import PodGroupReconciler
from claimctl.controller.snapshots import Knowledge
from claimctl.embedded.options import Dialect
from claimctl.kube.clock import LoopClock
from claimctl.kube.events import EventRecorder
from claimctl.reservation.snapshot import Rules
from claimctl.wire.reservations import FINALIZER, MANAGED_LABEL
from tests.e2e.harness import CRDS
from tests.support.builders import CLAIM, NAMESPACE, NOW
from tests.unit.controller.recording import Recording
from tests.unit.controller.servers import Server, pod_body, server

LIST = f"GET /api/v1/namespaces/{NAMESPACE}/pods"


def deleted_group(made: Server) -> None:
    """Made by claimctl for a workload that is gone, and deleted."""
    for path in sorted(CRDS.glob("*.claimctl.io.yaml")):
        made.create("customresourcedefinitions", yaml.safe_load(path.read_text()))
    meta = {"name": "train", "namespace": NAMESPACE, "labels": {MANAGED_LABEL: "claimctl"}}
    spec = {
        "schedulingPolicy": {"basic": {}},
        "resourceClaims": [{"name": "gpu", "resourceClaimName": CLAIM}],
    }
    body = {"metadata": {**meta, "finalizers": [FINALIZER]}, "spec": spec}
    made.create("podgroups", body)
    made.admin.delete("podgroups", NAMESPACE, "train")


def member(name: str, group: str = "train") -> dict[str, Any]:
    body = pod_body(name)
    body["spec"]["schedulingGroup"] = {"podGroupName": group}
    return body


@pytest.mark.parametrize(
    ("late", "guarded"),
    [
        pytest.param((), False, id="no pod at all"),
        pytest.param((member("late"),), True, id="a pod that the cache does not show yet"),
        pytest.param((member("other", "else"),), False, id="a pod of another group"),
    ],
)
async def test_a_group_is_let_go_only_when_a_live_list_shows_no_pod_of_it(
    late: tuple[dict[str, Any], ...], guarded: bool
) -> None:
    """KCM would take the group out of the claim, deallocate, and the pod be bound all the same."""
    made = server(Dialect.PODGROUP, kubernetes_version=(1, 37))
    deleted_group(made)
    caches = await filled(made)
    for body in late:
        made.create("pods", body)
    await look_at_group(made, caches)
    assert LIST in made.requests
    assert any(FINALIZER in finalizers for finalizers in finalizers_left(made)) == guarded


def finalizers_left(made: Server) -> list[list[str]]:
    return [each["metadata"]["finalizers"] for each in made.admin.list("podgroups", NAMESPACE)]


async def filled(made: Server) -> Caches:
    """Caches that are told no more than what they list now."""
    caches = Caches(made.client, LoopClock(NOW), Random(0))
    informers = [*caches.informers(), caches.groups.follow()]
    tasks = [asyncio.create_task(each.run()) for each in informers]
    for each in informers:
        await each.wait_synced()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    made.requests.clear()
    return caches


async def look_at_group(made: Server, caches: Caches) -> None:
    clock = LoopClock(NOW)
    knowledge = Knowledge(
        caches=caches,
        observations=Observations(clock),
        investigator=Investigator(made.client, caches.pods),
        clock=clock,
        rules=Rules(dialect="podgroup"),
    )
    events = EventRecorder(made.client, clock, "test", "test")
    reconciler = PodGroupReconciler(made.client, knowledge, events)
    with Recording().span("reconcile") as span:
        await reconciler.reconcile(GroupKey(NAMESPACE, "train"), span)
