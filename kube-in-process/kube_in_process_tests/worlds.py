"""An embedded cluster on a virtual clock, and the objects that tests put into it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset, Timings

Object = dict[str, Any]
WORKLOAD = {"apiGroup": "apps", "resource": "deployments", "name": "work", "uid": "work-uid"}


class World:
    """A cluster with one namespace in use, 'default'."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.api = cluster.admin

    async def passes(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    # Objects

    def claim(self, name: str = "shared", spec: Object | None = None, **more: Any) -> Object:
        exactly = {"deviceClassName": "gpu.example.com"}
        devices = spec or {"requests": [{"name": "d", "exactly": exactly}]}
        return self.create("resourceclaims", name, {"devices": devices, **more})

    def pod(self, name: str, claim: str = "", **spec: Any) -> Object:
        metadata = spec.pop("metadata", {})
        return self.create("pods", name, {**pod_spec(claim), **spec}, **metadata)

    def workload(self, plural: str, name: str, claim: str = "", **spec: Any) -> Object:
        template = {
            "metadata": {"labels": {"app": name}, **spec.pop("metadata", {})},
            "spec": {**pod_spec(claim), **spec.pop("pod", {})},
        }
        selector = {} if plural == "jobs" else {"selector": {"matchLabels": {"app": name}}}
        return self.create(plural, name, {"template": template, **selector, **spec})

    def create(self, plural: str, name: str, spec: Object, **metadata: Any) -> Object:
        kind = self.api.api.kinds.named(plural)
        place = {"namespace": "default"} if kind.namespaced else {}
        return self.api.create(
            plural, {"metadata": {"name": name, **place, **metadata}, "spec": spec}
        )

    # Looks

    def get(self, plural: str, name: str) -> Object:
        kind = self.api.api.kinds.named(plural)
        return self.api.get(plural, "default" if kind.namespaced else "", name)

    def pods(self, name: str = "") -> list[Object]:
        return [pod for pod in self.api.list("pods") if pod["metadata"]["name"].startswith(name)]

    def phases(self, name: str = "") -> list[str]:
        return sorted(pod["status"]["phase"] for pod in self.pods(name))

    def listed(self, claim: str = "shared") -> list[str]:
        """Names in status.reservedFor."""
        status = self.get("resourceclaims", claim)["status"]
        return [reference["name"] for reference in status.get("reservedFor") or ()]

    def allocated(self, claim: str = "shared") -> bool:
        return "allocation" in self.get("resourceclaims", claim)["status"]

    def devices(self, claim: str = "shared") -> list[str]:
        results = self.get("resourceclaims", claim)["status"]["allocation"]["devices"]["results"]
        return [f"{result['pool']}/{result['device']}" for result in results]

    def reason(self, pod: str) -> str:
        """Why a pod is not scheduled: reason and message of its condition."""
        for condition in self.get("pods", pod)["status"].get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return f"{condition['reason']}: {condition['message']}"
        return ""

    def reserve(self, *references: Object, claim: str = "shared") -> None:
        """A client replaces the list of a claim."""
        stored = self.get("resourceclaims", claim)
        status = {**stored["status"], "reservedFor": list(references)}
        self.api.update("resourceclaims", {**stored, "status": status}, "status")

    def events(self, reason: str) -> list[str]:
        return [event["message"] for event in self.api.list("events") if event["reason"] == reason]

    def told(self, name: str) -> str:
        """The messages of all events about an object, oldest first."""
        events = self.api.list("events")
        mine = [event for event in events if event["involvedObject"]["name"] == name]
        return "\n".join(event["message"] for event in mine)

    def writes(self, plural: str, name: str) -> list[tuple[str, str]]:
        """Who wrote an object and how, oldest first."""
        return [
            (
                revision.actor.removeprefix("system:"),
                f"{revision.verb} {revision.subresource}".strip(),
            )
            for revision in self.cluster.history()
            if (revision.plural, revision.name) == (plural, name)
        ]


def pod_spec(claim: str = "") -> Object:
    container = {"name": "c", "image": "x"}
    if not claim:
        return {"containers": [container]}
    return {
        "containers": [container],
        "resourceClaims": [{"name": "c", "resourceClaimName": claim}],
    }


NATIVE = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD)
HOLD = ClusterOptions(preset=Preset.PLAIN)
HOLD_134 = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 34))
PODGROUP = ClusterOptions(preset=Preset.POD_GROUPS)


def timed(options: ClusterOptions, **timings: Any) -> ClusterOptions:
    return replace(options, timings=Timings(**timings))


@asynccontextmanager
async def world(options: ClusterOptions) -> AsyncIterator[World]:
    cluster = Cluster(options, LoopClock(EPOCH))
    await cluster.start()
    try:
        yield World(cluster)
    finally:
        await cluster.stop()
    assert cluster.failures == []
