"""An API server without controllers, with claims and pods put there as a test wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from kube_in_process.api_server import api_server
from kube_in_process.http.handler import Handler
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.runtime.local import ApiFor
from kube_in_process.storage.raw_json import TEXT
from kube_in_process.storage.requests import Actor, Fault, FaultPoint

from claimctl.downgrade.prepare import run_plan
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.wire.base import decode
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import (
    DOWNGRADE_PLAN_NAME,
    FINALIZER,
    DowngradePlan,
    DowngradePlanStatus,
)
from claimctl.wire.resources import DOWNGRADEPLANS, RESOURCECLAIMS
from tests.support.builders import NOW
from tests.support.crds import definitions
from tests.support.spoiling import Spoiling

TRAIN = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": "d-1"}
NAMESPACE = "ml"


@dataclass
class Server:
    handler: Handler
    admin: ApiFor
    client: Client
    clock: LoopClock
    spoiling: Spoiling
    """What the client reads through."""

    @classmethod
    def started(
        cls, *namespaces: str, crds: bool = True, dialect: Preset = Preset.RESERVED_FOR_ANY_POD
    ) -> Server:
        """In a running event loop."""
        clock = LoopClock(NOW)
        handler = api_server(ClusterOptions(preset=dialect), clock)
        admin = ApiFor(handler.api, Actor("admin", ("system:masters",), "admin"))
        for name in namespaces or (NAMESPACE,):
            admin.create("namespaces", {"metadata": {"name": name}})
        for definition in definitions() if crds else ():
            admin.create("customresourcedefinitions", definition)
        spoiling = Spoiling(handler)
        return cls(handler, admin, Client(spoiling, clock, rng=Random(0)), clock, spoiling)

    @classmethod
    def with_unreadable(cls, plural: str, name: str, *path: str) -> Server:
        """A server whose client gets a bad value in the objects of that name."""
        made = cls.started()
        made.spoil(plural, name, *path)
        return made

    def spoil(self, plural: str, name: str, *path: str) -> None:
        """Put a bad value into what the client gets from now on."""
        self.spoiling.spoil(plural, name, *path)

    def claim(
        self,
        name: str = "slice",
        *references: dict[str, str],
        namespace: str = NAMESPACE,
        shared: bool = True,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """An allocated claim with this list; the default is the reference to the Deployment.

        ``spec.reservedFor`` names the first entry of the list.
        """
        spec = {"devices": {}, "reservedFor": next(iter(references), TRAIN)}
        meta = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
        self.admin.create("resourceclaims", {"metadata": meta, "spec": spec})
        allocation: dict[str, Any] = {"devices": {}}
        if shared:
            allocation["reservedForAnyPod"] = True
        status = {"allocation": allocation, "reservedFor": list(references or (TRAIN,))}
        self.admin.patch("resourceclaims", namespace, name, {"status": status}, "status")

    def pod(
        self,
        name: str,
        *,
        claim: str = "slice",
        namespace: str = NAMESPACE,
        node: str = "n1",
        group: str = "",
    ) -> dict[str, str]:
        """A bound pod that runs (a pending one without a node); its reference."""
        spec: dict[str, Any] = {
            "containers": [{"name": "main", "image": "x"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
        }
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        body = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
        created = self.admin.create("pods", body)
        if node:
            self.admin.bind(namespace, name, node)
            status = {"status": {"phase": "Running"}}
            self.admin.patch("pods", namespace, name, status, "status")
        return {"resource": "pods", "name": name, "uid": created["metadata"]["uid"]}

    def deployment(
        self, *, replicas: int = 1, annotations: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """The Deployment train, whose pods use the claim slice; its reference."""
        labels = {"app": "train"}
        pod_spec = {
            "containers": [{"name": "main", "image": "x"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
        }
        meta = {"name": "train", "namespace": NAMESPACE, "annotations": dict(annotations or {})}
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec},
        }
        created = self.admin.create("deployments", {"metadata": meta, "spec": spec})
        return {**TRAIN, "uid": created["metadata"]["uid"]}

    def reservation(
        self,
        name: str = "train",
        *,
        claim: str = "slice",
        workload: str = "train",
        status: dict[str, Any] | None = None,
        **spec: Any,
    ) -> None:
        """A ClaimReservation of the claim for a Deployment."""
        ref = {"apiGroup": "apps", "kind": "Deployment", "name": workload}
        body = {
            "apiVersion": "claimctl.io/v1alpha1",
            "kind": "ClaimReservation",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"resourceClaimName": claim, "workloadRef": ref, **spec},
        }
        self.admin.create("claimreservations", body)
        if status:
            self.admin.patch("claimreservations", NAMESPACE, name, {"status": status}, "status")

    @classmethod
    def holding(
        cls, *, replicas: int = 1, status: Mapping[str, Any] | None = None, **spec: Any
    ) -> Server:
        """A server on which a ClaimReservation holds the claim slice for the Deployment train.

        Args:
            status: further fields of its status.
            spec: further fields of its spec.
        """
        made = cls.started()
        reference = made.deployment(replicas=replicas)
        made.claim("slice", reference)
        made.reservation(status={**made.held_status(reference), **(status or {})}, **spec)
        return made

    def withdraw(self, reservation: str = "train") -> None:
        """Delete a ClaimReservation that has claimctl's finalizer."""
        finalizers = {"metadata": {"finalizers": [FINALIZER]}}
        self.admin.patch("claimreservations", NAMESPACE, reservation, finalizers)
        self.admin.delete("claimreservations", NAMESPACE, reservation)

    def held_status(self, reference: dict[str, str]) -> dict[str, Any]:
        """The status of a ClaimReservation that holds the claim slice."""
        claim = self.admin.get("resourceclaims", NAMESPACE, "slice")
        return {
            "dialect": "native",
            "claimUID": claim["metadata"]["uid"],
            "reservedFor": reference,
        }

    def orphan(self) -> None:
        """The claim slice, allocated and with an empty list."""
        vm = {"apiGroup": "example.com", "resource": "vms", "name": "vm", "uid": "v-1"}
        self.claim("slice", vm, shared=False)
        self.write_list()

    def unchangeable(self, *references: dict[str, str], **meta: Any) -> None:
        """The claim slice, allocated; a server takes no patch of it, whose parameters have a space.

        Its writer sends the bytes of the parameters as they are, as Kubernetes' components do.
        """
        config = {"opaque": {"driver": "d.example.com", "parameters": {TEXT: '{"a": 1}'}}}
        body = {
            "metadata": {"name": "slice", "namespace": NAMESPACE, **meta},
            "spec": {"devices": {"config": [config]}, "reservedFor": TRAIN},
        }
        claim = self.admin.create("resourceclaims", body)
        allocation = {"devices": {"config": [{"source": "FromClaim", **config}]}}
        status = {"allocation": allocation, "reservedFor": list(references)}
        self.admin.update("resourceclaims", {**claim, "status": status}, "status")

    def listed(self, name: str = "slice", namespace: str = NAMESPACE) -> list[str]:
        listed = self.admin.get("resourceclaims", namespace, name)["status"]["reservedFor"]
        return [f"{entry['resource']}/{entry['name']}" for entry in listed]

    def version(self, name: str = "slice") -> str:
        claim = self.admin.get("resourceclaims", NAMESPACE, name)
        return str(claim["metadata"]["resourceVersion"])

    def write_list(self, *references: dict[str, str], name: str = "slice") -> None:
        status = {"status": {"reservedFor": list(references)}}
        self.admin.patch("resourceclaims", NAMESPACE, name, status, "status")

    async def list_as_claimctl(self, *references: dict[str, str], name: str = "slice") -> None:
        """Write the list as claimctl: managedFields show that for the entries that are new."""
        await self.client.merge_patch(
            RESOURCECLAIMS,
            ObjectMeta(name=name, namespace=NAMESPACE, resource_version=self.version(name)),
            {"status": {"reservedFor": list(references)}},
            subresource="status",
        )

    async def plan(self, *namespaces: str, **spec: Any) -> DowngradePlan:
        """Create the plan, for these namespaces and with these further fields of its spec."""
        wanted = {"namespaces": list(namespaces), **spec}
        body = {"metadata": {"name": DOWNGRADE_PLAN_NAME}, "spec": wanted}
        return await self.client.create(DOWNGRADEPLANS, body)

    async def read_plan(self) -> DowngradePlan:
        return await self.client.get(DOWNGRADEPLANS, DOWNGRADE_PLAN_NAME)

    @property
    def reports(self) -> list[DowngradePlanStatus]:
        """Every status of the plan that a run has stored."""
        written = (it for it in self.handler.api.store.history() if it.plural == "downgradeplans")
        statuses = (decode(each.data, DowngradePlan).status for each in written)
        return [status for status in statuses if status.phase]

    async def carry_out(
        self, plan: DowngradePlan | None = None, *, tombstones: bool = True
    ) -> DowngradePlanStatus:
        """Carry out the plan, or one for all namespaces."""
        wanted = plan or await self.plan()
        return await run_plan(self.client, wanted, self.clock, tombstones=tombstones)

    def upon(self, verb: str, plural: str, act: Callable[[int], Fault | None]) -> None:
        """Call ``act`` with 1, 2, ... at each such request, before it is served."""
        seen = 0

        def hook(point: FaultPoint) -> Fault | None:
            nonlocal seen
            if (point.verb, point.plural) != (verb, plural):
                return None
            seen += 1
            return act(seen)

        self.handler.fault = hook
