"""A small cluster for the parts of a controller, and caches of it."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from kube_in_process.options import Preset

from claimctl.controller.caches.informers import Caches
from claimctl.controller.keys import GroupKey
from claimctl.controller.live_reads import Investigator
from claimctl.controller.observations.observations import Observations
from claimctl.controller.reconcilers.pod_group import PodGroupReconciler
from claimctl.controller.snapshots import Knowledge
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.events import EventRecorder
from claimctl.reservation.facts.snapshot import Rules
from claimctl.wire.reservations import FINALIZER, MANAGED_LABEL
from tests.support.builders import CLAIM, NAMESPACE, NOW
from tests.support.counting_server import CountingServer, pod_body, server
from tests.support.crds import definitions
from tests.support.recording import Recording
from tests.support.spoiling import Spoiling


def define_custom_resources(made: CountingServer) -> None:
    for definition in definitions():
        made.create("customresourcedefinitions", definition)


DEVICE = {"request": "tpu", "driver": "tpu.example.com", "pool": "node-0", "device": "tpu-0"}


def furnish(made: CountingServer) -> None:
    """An allocated claim, a pod of a Deployment that uses it, and a ClaimReservation."""
    define_custom_resources(made)
    request = {"name": "tpu", "exactly": {"deviceClassName": "tpu.example.com"}}
    made.create("resourceclaims", _meta(CLAIM) | {"spec": {"devices": {"requests": [request]}}})
    pod = made.create("pods", pod_body("train-1", node="node-0"))
    claim = made.admin.get("resourceclaims", NAMESPACE, CLAIM)
    claim["status"] = {
        "allocation": {"devices": {"results": [DEVICE]}},
        "reservedFor": [
            {"resource": "pods", "name": "train-1", "uid": pod["metadata"]["uid"]},
        ],
    }
    made.admin.update("resourceclaims", claim, "status")
    reserve(made, "train")


def reserve(made: CountingServer, workload: str) -> str:
    """The UID of a new Deployment for which the claim is reserved."""
    deployment = made.create("deployments", _meta(workload) | {"spec": _deployment()})
    reservation = _meta(f"{workload}-slice") | {
        "apiVersion": "claimctl.io/v1alpha1",
        "kind": "ClaimReservation",
        "spec": {
            "resourceClaimName": CLAIM,
            "workloadRef": {"apiGroup": "apps", "kind": "Deployment", "name": workload},
        },
    }
    reservation["metadata"]["finalizers"] = [FINALIZER]
    made.create("claimreservations", reservation)
    return str(deployment["metadata"]["uid"])


def _meta(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": NAMESPACE}}


def _deployment() -> dict[str, Any]:
    labels = {"app": "train"}
    spec = pod_body("template")["spec"]
    return {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }


def groups_server() -> tuple[CountingServer, Spoiling]:
    """A server with PodGroups, and what puts bad values into its answers."""
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
    spoiling = Spoiling(made.transport)
    made.client = Client(spoiling, LoopClock(NOW))
    return made, spoiling


async def filled(made: CountingServer) -> Caches:
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


def knowledge(made: CountingServer, caches: Caches, dialect: str = "hold") -> Knowledge:
    clock = LoopClock(NOW)
    return Knowledge(
        caches=caches,
        observations=Observations(clock),
        investigator=Investigator(made.client, caches.pods, caches.kinds),
        clock=clock,
        rules=Rules(dialect=dialect),
    )


def deleted_group(made: CountingServer) -> None:
    """Made by claimctl for a workload that is gone, and deleted."""
    define_custom_resources(made)
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


def finalizers_left(made: CountingServer) -> list[list[str]]:
    return [each["metadata"]["finalizers"] for each in made.admin.list("podgroups", NAMESPACE)]


async def look_at_group(made: CountingServer, caches: Caches) -> None:
    known = knowledge(made, caches, "podgroup")
    events = EventRecorder(made.client, known.clock, "test", "test")
    reconciler = PodGroupReconciler(made.client, known, events)
    with Recording().span("reconcile") as span:
        await reconciler.reconcile(GroupKey(NAMESPACE, "train"), span)


def plan(*namespaces: str) -> dict[str, Any]:
    return {
        "apiVersion": "claimctl.io/v1alpha1",
        "kind": "DowngradePlan",
        "metadata": {"name": "claimctl"},
        "spec": {"namespaces": list(namespaces)},
    }
