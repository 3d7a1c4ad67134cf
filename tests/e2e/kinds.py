"""Kinds of workloads from CustomResourceDefinitions, and their controllers, played by the test."""

from __future__ import annotations

from typing import Any

from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import JOBS, PODS, WORKLOADKINDS, Resource
from tests.e2e import manifests
from tests.e2e.harness import Stage

Json = dict[str, Any]
DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    ObjectHeader,
    namespaced=False,
)
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", ObjectHeader)
GANGS = Resource("acme.example", "v1", "gangs", "Gang", ObjectHeader)
"""A kind for which claimctl ships no rule."""
LEADERS = Resource(
    "leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", ObjectHeader
)


def definition(resource: Resource[Any], *, namespaced: bool = True) -> Json:
    """A CustomResourceDefinition that keeps every field, with a status."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": resource.kind, "listKind": f"{resource.kind}List", "plural": resource.plural}
    return {
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {**names, "singular": resource.kind.lower()},
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


async def define(stage: Stage, *resources: Resource[Any]) -> None:
    for resource in resources:
        await stage.create(DEFINITIONS, definition(resource))


async def begin(
    stage: Stage, resource: Resource[Any], name: str = "train", **spec: Any
) -> ObjectHeader:
    """Create an annotated workload of the kind."""
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "annotations": {"claimctl.io/reserve": "*"}},
        "spec": spec,
    }
    made: ObjectHeader = await stage.create(resource, body)
    return made


def owned(body: Json, owner: ObjectHeader, resource: Resource[Any]) -> Json:
    """The manifest, with the object as its controller."""
    reference = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}


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
