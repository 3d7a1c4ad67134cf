"""The objects of a story, for one Kubernetes version and the story's nodes and devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kube_in_process.real.servers.features import resource_api

from judges.differential.actions.story import StoryStep, send

Object = dict[str, Any]

GROUPS = {
    "deployments": "apis/apps/v1",
    "replicasets": "apis/apps/v1",
    "statefulsets": "apis/apps/v1",
    "jobs": "apis/batch/v1",
    "poddisruptionbudgets": "apis/policy/v1",
    "podgroups": "apis/scheduling.k8s.io/v1alpha2",
    "pods": "api/v1",
    "services": "api/v1",
}
KINDS = {
    "deployments": "Deployment",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "jobs": "Job",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "podgroups": "PodGroup",
    "pods": "Pod",
    "resourceclaims": "ResourceClaim",
    "resourceclaimtemplates": "ResourceClaimTemplate",
}
SHARED, OWN, NONE = "shared", "own", "none"
"""Pods share a claim by name, have one each from a template, or use none."""


@dataclass(frozen=True, slots=True)
class Manifests:
    version: tuple[int, int]
    nodes: int

    def path(self, plural: str, plain: str = "", sub: str = "") -> str:
        group = GROUPS.get(plural) or f"apis/resource.k8s.io/{resource_api(self.version)}"
        parts = ["", group, "namespaces/{ns}", plural, plain, sub]
        return "/".join(part for index, part in enumerate(parts) if part or not index)

    def create(self, plural: str, plain: str, note: str = "", **body: Any) -> StoryStep:
        api = (
            self.path(plural).split("/namespaces/")[0].removeprefix("/apis/").removeprefix("/api/")
        )
        metadata = {"name": plain, **body.pop("metadata", {})}
        whole = {"apiVersion": api, "kind": KINDS[plural], "metadata": metadata, **body}
        said = note or f"create {KINDS[plural]} {plain}"
        return send(said, "POST", self.path(plural), whole)

    def patch(
        self, plural: str, plain: str, note: str, body: Object, kind: str = "merge"
    ) -> StoryStep:
        return send(note, "PATCH", self.path(plural, plain), body, patch=kind)

    def delete(self, plural: str, plain: str, cascade: str = "") -> StoryStep:
        said = f"delete {KINDS[plural]} {plain} {cascade}".strip()
        body = {"propagationPolicy": cascade} if cascade else None
        return send(said, "DELETE", self.path(plural, plain), body)

    # Devices

    def _request(self, count: int, tolerations: Sequence[Object] = ()) -> Object:
        wanted: Object = {"deviceClassName": "{ns}.tpu"}
        if tolerations:
            wanted["tolerations"] = list(tolerations)
        if count > 1:
            wanted["count"] = count
        if self.version < (1, 33):
            return {"name": "d", **wanted}
        return {"name": "d", "exactly": wanted}

    def claim(self, plain: str, count: int = 1, tolerations: Sequence[Object] = ()) -> StoryStep:
        spec = {"devices": {"requests": [self._request(count, tolerations)]}}
        return self.create("resourceclaims", plain, spec=spec)

    def template(self, plain: str, count: int = 1, tolerations: Sequence[Object] = ()) -> StoryStep:
        spec = {"spec": {"devices": {"requests": [self._request(count, tolerations)]}}}
        return self.create("resourceclaimtemplates", plain, spec=spec)

    # Pods

    def pod_spec(self, claims: str = NONE, **more: Any) -> Object:
        """A pod that can only be scheduled to the story's nodes."""
        names = [f"{{ns}}-node-{index}" for index in range(self.nodes)]
        terms = [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
            for name in names
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        container: Object = {"name": "c", "image": "x"}
        spec: Object = {
            "containers": [container],
            "affinity": {"nodeAffinity": required},
            "terminationGracePeriodSeconds": 30,
        }
        source = {
            SHARED: {"resourceClaimName": "shared"},
            OWN: {"resourceClaimTemplateName": "each"},
        }
        if claims != NONE:
            container["resources"] = {"claims": [{"name": "c"}]}
            spec["resourceClaims"] = [{"name": "c", **source[claims]}]
        return {**spec, **more}

    def pod_template(self, workload: str, spec: Object, **labels: str) -> Object:
        return {"metadata": {"labels": {"a": workload, **labels}}, "spec": spec}

    def needs(
        self, claims: str, count: int = 1, tolerations: Sequence[Object] = ()
    ) -> list[StoryStep]:
        if claims == SHARED:
            return [self.claim("shared", count, tolerations)]
        return [self.template("each", count, tolerations)] if claims == OWN else []

    def scale(self, plural: str, plain: str, size: int, sub: str = "") -> StoryStep:
        """Scale through the object, or with ``sub`` "scale" as kubectl does."""
        path, said = self.path(plural, plain, sub), f"scale {plain} to {size}"
        return send(said, "PATCH", path, {"spec": {"replicas": size}}, patch="merge")

    def roll(self, plural: str, plain: str, version: int) -> StoryStep:
        """Change the template. An earlier version means a rollback."""
        body = {"spec": {"template": {"metadata": {"annotations": {"version": f"v{version}"}}}}}
        return self.patch(plural, plain, f"roll {plain} out to v{version}", body)
