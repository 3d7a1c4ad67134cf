"""Kinds of workloads from CustomResourceDefinitions, the rights to read them, and their objects."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from claimctl.controller.caches.kinds import AGGREGATE, VERBS
from claimctl.kube.client import Client
from claimctl.kube.errors import AlreadyExists
from claimctl.wire.access_reviews import Right
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import JOBS, PODS, WORKLOADKINDS, Resource
from tests.e2e import manifests
from tests.e2e.harness import DEFINITIONS, Stage
from tests.e2e.operators import SHAPES, owned
from tests.e2e.rights import RESOURCES
from tests.e2e.site import CONTROLLER_USER

Json = dict[str, Any]


GANGS = Resource("acme.example", "v1", "gangs", "Gang", ObjectHeader)
"""A kind for which claimctl ships no rule."""


def gangs(scenario: str, *, namespaced: bool = True) -> Resource[ObjectHeader]:
    """Gangs in an API group of the scenario's own: scenarios share a real cluster."""
    group = f"{scenario}.{GANGS.group}"
    return Resource(group, "v1", "gangs", "Gang", ObjectHeader, namespaced=namespaced)


def definition(resource: Resource[Any]) -> Json:
    """A CustomResourceDefinition: of the real shape, or one that keeps every field."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema, subresources = SHAPES.get(resource.kind, (free, {"status": {}}))
    names = {"kind": resource.kind, "listKind": f"{resource.kind}List", "plural": resource.plural}
    meta: Json = {"name": f"{resource.plural}.{resource.group}"}
    if resource.group.endswith(".x-k8s.io"):
        approval = "https://github.com/kubernetes-sigs"
        meta["annotations"] = {"api-approved.kubernetes.io": approval}
    return {
        "metadata": meta,
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {**names, "singular": resource.kind.lower()},
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "subresources": subresources,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


async def define(stage: Stage, resource: Resource[Any]) -> str:
    """Define the kind, and let the controller read it. On a real cluster another scenario may have
    defined it already. Returns the name of the role with the right."""

    async def is_served() -> bool:
        await stage.client.list(resource)
        return True

    with suppress(AlreadyExists):
        await stage.create(DEFINITIONS, definition(resource))
    await stage.until(is_served, f"{resource.plural} are served")
    return await permit(stage, resource)


async def permit(stage: Stage, resource: Resource[Any]) -> str:
    """Create the ClusterRole that lets the controller read the kind, and wait until it counts.
    Returns its name on this cluster."""
    rule = {
        "apiGroups": [resource.group],
        "resources": [resource.plural],
        "verbs": list(VERBS),
    }
    name = f"claimctl-workloads-{resource.plural}.{resource.group}"
    meta = {"name": name, "labels": {AGGREGATE: "true"}}
    made: ObjectHeader = await stage.create(
        RESOURCES["ClusterRole"], {"metadata": meta, "rules": [rule]}
    )
    await _until_allowed(stage, resource, allowed=True)
    return made.metadata.name


async def forbid(stage: Stage, resource: Resource[Any], role: str) -> None:
    """Delete the role that lets the controller read the kind, and wait until it counts."""
    await stage.client.delete(RESOURCES["ClusterRole"], role)
    await _until_allowed(stage, resource, allowed=False)


async def _until_allowed(stage: Stage, resource: Resource[Any], *, allowed: bool) -> None:
    controller = Client(stage.site.connection(CONTROLLER_USER), stage.clock)

    async def holds() -> bool:
        answer = await controller.allowed(Right("list", resource.group, resource.plural))
        return answer is allowed

    await stage.until(holds, f"the right to list {resource.plural} is {allowed}")


async def begin(
    stage: Stage, resource: Resource[Any], name: str = "train", **spec: Any
) -> ObjectHeader:
    """Create an annotated workload of the kind."""
    body = {
        "metadata": {"name": name, "annotations": {"claimctl.io/reserve": "*"}},
        "spec": spec,
    }
    made: ObjectHeader = await stage.create(resource, body)
    return made


async def make_job(
    stage: Stage, owner: ObjectHeader, resource: Resource[Any], name: str, seconds: int = 10_000
) -> ObjectHeader:
    """A child Job that names the claim ``slice``, as the controller of the workload makes it."""
    body = manifests.job(name, pods=1, seconds=seconds)
    made: ObjectHeader = await stage.create(JOBS, owned(body, owner, resource))
    return made


async def make_pod(
    stage: Stage, owner: ObjectHeader, resource: Resource[Any], name: str
) -> ObjectHeader:
    template = manifests.deployment(name)["spec"]["template"]
    body = {"metadata": {"name": name}, "spec": template["spec"]}
    made: ObjectHeader = await stage.create(PODS, owned(body, owner, resource))
    return made


async def describe(stage: Stage, resource: Resource[Any], name: str = "", **spec: Any) -> None:
    """Create a WorkloadKind: the rule of the kind."""
    body = {
        "metadata": {"name": name or f"{resource.plural}.{resource.group}"},
        "spec": {"group": resource.group, "kind": resource.kind, **spec},
    }
    await stage.create(WORKLOADKINDS, body)
