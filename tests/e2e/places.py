"""Gives each scenario its own namespaces, nodes, devices and rights in a shared cluster.

Scenarios are written for one namespace and one DeviceClass. This module rewrites their requests to
names of their own. A controller asks for the objects of all namespaces; it gets those of its
scenario.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube_in_process.real.servers.nodes import FLEET_LABEL

from claimctl.controller.caches.kinds import AGGREGATE
from claimctl.wire.seams import Query, Response, Transport
from tests.e2e.site import CONTROLLER_NAMESPACE, NAMESPACE

DEVICE_CLASS = "gpu.example.com"
_EVERYWHERE = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)/([a-z]+)")
_NAMESPACED = frozenset(
    (
        *("pods", "deployments", "replicasets", "statefulsets", "jobs", "events", "podgroups"),
        *("resourceclaims", "resourceclaimtemplates", "claimreservations"),
        *("jobsets", "leaderworkersets", "gangs"),
    )
)
_CLUSTER_ROLES = ("ClusterRole", "ClusterRoleBinding")
SCENARIO = "claimctl.io/scenario"
"""The label of WorkloadKinds: they have no namespace, and each controller sees its scenario's."""


@dataclass(frozen=True, slots=True)
class ScenarioPlaces:
    """The names of one scenario."""

    suffix: str
    flat_requests: bool = False
    """Whether the server speaks v1beta1 of resource.k8s.io, where requests have no ``exactly``."""

    @property
    def namespace(self) -> str:
        return f"{NAMESPACE}-{self.suffix}"

    @property
    def controllers(self) -> str:
        """The namespace of the controllers' Lease and ServiceAccount."""
        return f"{CONTROLLER_NAMESPACE}-{self.suffix}"

    @property
    def account(self) -> str:
        """The user of the controllers."""
        return f"system:serviceaccount:{self.controllers}:claimctl-controller"

    @property
    def prefix(self) -> str:
        """The prefix of the names of the scenario's nodes."""
        return f"node-{self.suffix}"

    @property
    def device_class(self) -> str:
        return f"{self.suffix}.{DEVICE_CLASS}"

    def named(self, namespace: str) -> str:
        ours = {NAMESPACE: self.namespace, CONTROLLER_NAMESPACE: self.controllers}
        return ours.get(namespace, namespace)

    def path(self, path: str) -> str:
        """The path of a request, rewritten to the scenario's own names."""
        head, found, rest = path.partition("/namespaces/")
        if not found:
            return path
        name, slash, rest = rest.partition("/")
        return f"{head}{found}{self.named(name)}{slash}{rest}"

    def body(self, body: Any) -> Any:
        """A manifest or patch, rewritten to the scenario's own names."""
        if isinstance(body, list):
            return [self.body(each) for each in body]
        if not isinstance(body, dict):
            return body
        made = {key: self._value(key, value) for key, value in body.items()}
        if made.get("kind") in _CLUSTER_ROLES and "name" in made:
            made["name"] += f"-{self.suffix}"
        elif made.get("kind") in _CLUSTER_ROLES and "metadata" in made:
            made["metadata"]["name"] += f"-{self.suffix}"
        elif made.get("kind") == "WorkloadKind":
            made["metadata"]["labels"] = {SCENARIO: self.suffix}
        if "containers" in made:
            self._place(made)
        if self.flat_requests and "exactly" in made:
            made |= made.pop("exactly")
        return made

    def _place(self, spec: dict[str, Any]) -> None:
        """Keep a pod on the scenario's nodes.

        The scheduler of 1.36 may bind pods of a PodGroup to nodes without its devices.
        """
        spec.setdefault("nodeSelector", {FLEET_LABEL: self.prefix})

    def _value(self, key: str, value: Any) -> Any:
        if key == "namespace" and isinstance(value, str):
            return self.named(value)
        if key == "deviceClassName" and value == DEVICE_CLASS:
            return self.device_class
        # the controllers of other scenarios get no rights from this one's roles
        return self.suffix if key == AGGREGATE else self.body(value)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The transport of a user: rewrites requests to the scenario's own names."""

    inner: Transport
    places: ScenarioPlaces

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if body:
            body = json.dumps(self.places.body(json.loads(body))).encode()
        return await self.inner.send(method, self.places.path(path), query, headers, body)


@dataclass(frozen=True, slots=True)
class Scoped:
    """The transport of a controller: 'all namespaces' means the scenario's namespace, and the
    ResourceSlices are those of its nodes."""

    inner: Transport
    places: ScenarioPlaces

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        found = _EVERYWHERE.fullmatch(path)
        if method == "GET" and found is not None and found[2] in _NAMESPACED:
            path = f"{found[1]}/namespaces/{self.places.namespace}/{found[2]}"
        if method == "GET" and found is not None and found[2] == "resourceslices":
            query = (*query, ("labelSelector", f"{FLEET_LABEL}={self.places.prefix}"))
        if method == "GET" and found is not None and found[2] == "workloadkinds":
            query = (*query, ("labelSelector", f"{SCENARIO}={self.places.suffix}"))
        return await self.inner.send(method, path, query, headers, body)
