"""One try: a held claim, a pod that the scheduler is about to bind, and a reason to release.

The pod needs no write to the claim any more: the claim lists its PodGroup, or, where pods are
listed one by one, the pod itself. In that case somebody takes the pod's entry out again while the
pod is being bound, as kube-controller-manager does when its cache of pods is late.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kube_in_process.components.pods import allocation_of, reserved_for
from kube_in_process.real.client import Version
from kube_in_process.real.servers.nodes import NODE, Fleet

from claimctl.kube.errors import ApiError
from claimctl_demo.documents import DocumentClient
from labs.torture.bodies import RESERVATION, App, Bodies, Body

POD: Version = ("v1", "Pod")
CLAIM, PATIENT, VOLUME_NAME = "slice", "late", "data"
STORAGE_CLASS = "comes-late"
GATE = "claimctl.io/listed-first"


class Act(StrEnum):
    """Why the claim is to be released."""

    WITHDRAWN = "Withdrawn"
    CLAIM_DELETED = "ClaimDeleted"
    REALLOCATED = "Reallocated"


@dataclass(slots=True)
class BindingTry:
    """Everything in a namespace and on a node of its own."""

    client: DocumentClient
    pod_groups: bool
    late: bool
    """Whether the pod waits for a volume that comes late."""
    fleet: Fleet
    act: Act
    number: int
    acted: float = 0.0
    bound: float = 0.0
    """When, on the monotonic clock; 0 for not yet."""
    stranded: bool = False
    """Whether its claim was not allocated when that was seen. A pod that is bound uses the claim,
    so it is not deallocated any more."""
    bodies: Bodies = field(init=False)

    def __post_init__(self) -> None:
        self.bodies = Bodies(self.namespace, self.fleet, 20)

    @property
    def namespace(self) -> str:
        return f"{self.act.lower()}-{self.number}"

    @property
    def app(self) -> App:
        group = "train" if self.pod_groups else ""
        return App("Deployment", "train", CLAIM, group, policy="Persistent")

    @property
    def node(self) -> str:
        return self.fleet.names[self.number]

    # Before the scheduler is slow

    async def prepare(self) -> None:
        """A workload that wants no pods now, its reservation, and a pod that gets the devices."""
        meta = {"name": self.namespace}
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        await self.client.create(self.bodies.claim(CLAIM))
        reservation = self.bodies.reservation(self.app, template=False)
        reservation["spec"]["reallocateTimeoutSeconds"] = 1
        await self.client.create(reservation)
        await self.client.create(self.bodies.workload(self.app, 0))
        await self.client.create(self._pod("first"))

    async def is_held(self) -> bool:
        """Whether the first pod runs and the claim is held."""
        claim, pod = await self.claim(), await self.client.get(POD, self.namespace, "first")
        runs = pod.get("status", {}).get("phase") == "Running"
        return runs and any(
            entry["resource"] == "deployments" for entry in reserved_for(claim or {})
        )

    async def empty(self) -> None:
        """Delete the first pod; the hold stays. The next pod is listed before it is scheduled."""
        await self.client.delete(POD, self.namespace, "first")
        if self.act is Act.REALLOCATED:
            await self.client.create(self._pod("nowhere", nowhere=True))
        if not self.pod_groups:
            await self.client.create(self._pod(PATIENT, gated=True))

    async def is_empty(self) -> bool:
        try:
            await self.client.get(POD, self.namespace, "first")
        except ApiError as refused:
            return refused.status == 404
        return False

    async def list_ahead(self) -> None:
        """Where pods are listed one by one, list the next one, as the scheduler finds it then."""
        if self.pod_groups:
            return
        pod = await self.client.get(POD, self.namespace, PATIENT)
        entry = {"resource": "pods", "name": PATIENT, "uid": pod["metadata"]["uid"]}
        await self._list(lambda listed: [*listed, entry])

    # While it is

    async def begin(self) -> None:
        """The scheduler may begin with the pod."""
        if self.pod_groups:
            await self.client.create(self._pod(PATIENT))
        else:
            patch = {"spec": {"schedulingGates": None}}
            await self.client.patch(POD, self.namespace, PATIENT, patch)

    async def release(self, now: float) -> None:
        """Give the reason for the release."""
        if not self.pod_groups:
            await self._list(lambda listed: [entry for entry in listed if entry["name"] != PATIENT])
        self.acted = now
        if self.act is Act.WITHDRAWN:
            await self.client.delete(RESERVATION, self.namespace, self.app.reservation)
        elif self.act is Act.CLAIM_DELETED:
            await self.client.delete(self.fleet.claims, self.namespace, CLAIM)
        else:
            await self.client.patch(NODE, "", self.node, {"spec": {"unschedulable": True}})

    async def deliver(self) -> None:
        """Create the volume."""
        await self.client.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": self.namespace},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": "1Gi"},
                    "claimRef": {"namespace": self.namespace, "name": VOLUME_NAME},
                    "hostPath": {"path": "/nowhere"},
                    "storageClassName": STORAGE_CLASS,
                },
            }
        )

    async def look(self, now: float) -> None:
        """Note when the pod is bound, and whether its claim has devices then."""
        if self.bound:
            return
        pod = await self.client.get(POD, self.namespace, PATIENT)
        if pod["spec"].get("nodeName"):
            claim = await self.claim()
            self.bound, self.stranded = now, claim is None or allocation_of(claim) is None

    # Afterwards

    async def clear(self) -> None:
        """Delete everything but the claim."""
        for kind, name in (
            (POD, PATIENT),
            (POD, "nowhere"),
            (RESERVATION, self.app.reservation),
        ):
            with suppress(ApiError):
                await self.client.delete(kind, self.namespace, name)

    async def is_free(self) -> bool:
        claim = await self.claim()
        return claim is None or allocation_of(claim) is None

    async def claim(self) -> Body | None:
        try:
            return await self.client.get(self.fleet.claims, self.namespace, CLAIM)
        except ApiError as refused:
            if refused.status == 404:
                return None
            raise

    async def _list(self, change: Any) -> None:
        """Change the list, also beside other writers."""
        while True:
            claim = await self.claim()
            assert claim is not None
            patch = {
                "metadata": {"resourceVersion": claim["metadata"]["resourceVersion"]},
                "status": {"reservedFor": change(reserved_for(claim))},
            }
            try:
                await self.client.patch_status(self.fleet.claims, self.namespace, CLAIM, patch)
            except ApiError as refused:
                if refused.status != 409:
                    raise
            else:
                return

    def _pod(self, name: str, *, gated: bool = False, nowhere: bool = False) -> Body:
        spec = self.bodies.pod_spec(self.app)
        spec["terminationGracePeriodSeconds"] = 0
        chosen = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        values = ["nowhere"] if nowhere else [self.node]
        chosen["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] = values
        if nowhere:
            # a pod that finds no node keeps the others of its group from being scheduled
            spec.pop("schedulingGroup", None)
        if gated:
            spec["schedulingGates"] = [{"name": GATE}]
        if name == PATIENT and self.late:
            source = {"persistentVolumeClaim": {"claimName": VOLUME_NAME}}
            spec["volumes"] = [{"name": VOLUME_NAME, **source}]
        meta = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def volume_claim(self) -> Body:
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": VOLUME_NAME, "namespace": self.namespace},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": STORAGE_CLASS,
            },
        }
