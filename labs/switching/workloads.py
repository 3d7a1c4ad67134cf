"""The workloads of the run, what their users do, and how their claims look."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from kube_in_process.components.pods import allocation_of, ended, node_name, reserved_for
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.pod_worker import POD

from claimctl.kube.errors import KubeError
from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story import objects
from claimctl_demo.story.objects import DEPLOYMENT, Workload
from labs import frame

NAMESPACE = "ml"
GRACE = 20
"""forceDeletedPodGraceSeconds of every reservation."""


@dataclass(slots=True)
class SharedWorkloads:
    """One Deployment for each claim; its pods share the claim through a PodGroup."""

    client: DocumentClient
    fleet: Fleet
    most: int
    """The greatest number of pods of a Deployment."""
    rng: Random
    actions: int = 0
    """How many user actions were carried out."""
    wanted: dict[str, int] = field(default_factory=dict)
    """By Deployment: its replicas."""

    @property
    def names(self) -> list[str]:
        return [f"train-{number}" for number in range(self.fleet.count)]

    async def create(self) -> None:
        await self.client.create(objects.namespace(NAMESPACE))
        await frame.together(self._create(name) for name in self.names)

    async def _create(self, name: str) -> None:
        workload = Workload(NAMESPACE, name, name, self.most, group=name)
        self.wanted[name] = self.most
        await self.client.create(objects.claim(NAMESPACE, name))
        reservation = objects.reservation(
            workload, DEPLOYMENT, idleTimeoutSeconds=1, forceDeletedPodGraceSeconds=GRACE
        )
        await self.client.create(reservation)
        body = objects.deployment(workload)
        body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 2
        await self.client.create(body)

    async def scale(self, name: str, replicas: int) -> None:
        self.wanted[name] = replicas
        await self.client.patch(DEPLOYMENT, NAMESPACE, name, {"spec": {"replicas": replicas}})

    async def churn(self) -> None:
        """Scale Deployments and delete pods, some by force, until cancelled."""
        while True:
            await asyncio.sleep(self.rng.uniform(0.2, 1.0))
            # the API server is away while its gates are switched
            with suppress(KubeError, OSError):
                await self._act(self.rng.choice(self.names))
                self.actions += 1

    async def _act(self, name: str) -> None:
        kind = self.rng.randrange(3)
        if kind == 0:
            await self.scale(name, self.rng.randint(max(self.most // 2, 2), self.most))
            return
        pods = [pod for pod in await self.pods() if _owned(pod, name)]
        if len(pods) > 1:
            options = {"gracePeriodSeconds": 0} if kind == 1 else {}
            await self.client.delete(
                POD, NAMESPACE, self.rng.choice(pods)["metadata"]["name"], options
            )

    async def settle(self) -> None:
        """Give every Deployment all of its pods again."""
        await frame.together(self.scale(name, self.most) for name in self.names)

    # What is there

    async def pods(self) -> list[Object]:
        return await self.client.list(POD, NAMESPACE)

    async def claims(self) -> list[Object]:
        return await self.client.list(self.fleet.claims, NAMESPACE)

    async def waiting(self) -> list[str]:
        """The Deployments whose pods do not all run, with the number that runs."""
        pods = await self.pods()
        by_name = {name: [pod for pod in pods if _owned(pod, name)] for name in self.names}
        return [
            f"{name} {sum(map(_runs, own))}/{self.wanted[name]}"
            for name, own in by_name.items()
            if len(own) != self.wanted[name] or not all(map(_runs, own))
        ]

    async def unheld(self) -> list[str]:
        """The claims that do not list their Deployment and its PodGroup, once each.

        Pods that were listed one by one keep their entries until they are gone.
        """
        held = ["deployments", "podgroups"]
        lists = {
            claim["metadata"]["name"]: sorted(
                entry["resource"] for entry in reserved_for(claim) if entry["resource"] != "pods"
            )
            for claim in await self.claims()
        }
        return [f"{name} {resources}" for name, resources in lists.items() if resources != held]

    async def unlisted(self) -> list[str]:
        """The claims that do not list exactly the pods that are bound to a node."""
        pods = await self.pods()
        differing = []
        for claim in await self.claims():
            name = claim["metadata"]["name"]
            bound = {
                pod["metadata"]["uid"]
                for pod in pods
                if _owned(pod, name) and node_name(pod) and not ended(pod)
            }
            listed = {entry["uid"] for entry in reserved_for(claim)}
            if listed != bound:
                more, fewer = len(listed - bound), len(bound - listed)
                differing.append(f"{name} lists {more} more, {fewer} less")
        return differing

    async def allocated(self) -> list[str]:
        return [
            claim["metadata"]["name"]
            for claim in await self.claims()
            if allocation_of(claim) is not None
        ]

    async def strangers(self) -> list[str]:
        """The claims that list a pod which is not there any more."""
        uids = {pod["metadata"]["uid"] for pod in await self.pods()}
        return [
            claim["metadata"]["name"]
            for claim in await self.claims()
            if any(
                entry["resource"] == "pods" and entry["uid"] not in uids
                for entry in reserved_for(claim)
            )
        ]

    async def picture(self) -> dict[str, object]:
        """By claim: its UID, its devices, and the entries that are no pods."""
        return {
            claim["metadata"]["name"]: (
                claim["metadata"]["uid"],
                allocation_of(claim),
                sorted(
                    tuple(sorted(entry.items()))
                    for entry in reserved_for(claim)
                    if entry["resource"] != "pods"
                ),
            )
            for claim in await self.claims()
        }


def _owned(pod: Object, name: str) -> bool:
    return (pod["metadata"].get("labels") or {}).get("app") == name


def _runs(pod: Object) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
