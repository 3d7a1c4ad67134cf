"""The workloads whose pods share the claims of ``bench.many_claims``, as plain documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

Object = dict[str, Any]
Maker = Literal["Deployment", "Job", "JobSet"]
"""Whose pods share a claim: a Deployment's, one Job's, or those of a JobSet with a Job a pod."""

RESERVE = {"claimctl.io/reserve": "*"}
JOBSETS: Object = {
    "metadata": {"name": "jobsets.jobset.x-k8s.io"},
    "spec": {
        "group": "jobset.x-k8s.io",
        "names": {"kind": "JobSet", "plural": "jobsets", "singular": "jobset"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
                "subresources": {"status": {}},
            }
        ],
    },
}


def objects_of(maker: Maker, number: int, pods: int) -> Iterator[tuple[str, str, Object]]:
    """The API group, the resource and the document of each object above the pods of a claim."""
    match maker:
        case "Deployment":
            yield "apps", "deployments", _deployment(number, pods)
            yield "apps", "replicasets", _replica_set(number, pods)
        case "Job":
            yield "batch", "jobs", _job(number, pods, annotations=RESERVE)
        case "JobSet":
            yield "jobset.x-k8s.io", "jobsets", _jobset(number)
            top = _controller("jobset.x-k8s.io/v1alpha2", "JobSet", f"train-{number}")
            for place in range(pods):
                name = f"train-{number}-{place}"
                yield "batch", "jobs", _job(number, 1, name=name, ownerReferences=[top])


def owner_of(maker: Maker, number: int, place: int) -> Object:
    """The controller of a pod, as an owner reference."""
    match maker:
        case "Deployment":
            return _controller("apps/v1", "ReplicaSet", f"train-{number}-1")
        case "Job":
            return _controller("batch/v1", "Job", f"train-{number}")
        case "JobSet":
            return _controller("batch/v1", "Job", f"train-{number}-{place}")


def _controller(version: str, kind: str, name: str) -> Object:
    made = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}"}
    return {**made, "controller": True, "blockOwnerDeletion": True}


def meta_of(name: str, **more: Any) -> Object:
    """The metadata of an object that exists for a while."""
    uid = f"uid-{name}"
    times = {"creationTimestamp": "2026-01-02T03:04:05Z", "generation": 1}
    return {"name": name, "namespace": "work", "uid": uid, **times, **more}


def _template(number: int) -> Object:
    container = {"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimName": f"slice-{number}"}]
    return {
        "metadata": {"labels": {"app": f"train-{number}"}},
        "spec": {"containers": [container], "resourceClaims": claims},
    }


def _deployment(number: int, pods: int) -> Object:
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": meta_of(f"train-{number}", annotations=RESERVE),
        "spec": {**_scaled(number, pods), "strategy": {"type": "Recreate"}},
        "status": {"replicas": pods, "observedGeneration": 1},
    }


def _replica_set(number: int, pods: int) -> Object:
    owner = _controller("apps/v1", "Deployment", f"train-{number}")
    return {
        "kind": "ReplicaSet",
        "apiVersion": "apps/v1",
        "metadata": meta_of(f"train-{number}-1", ownerReferences=[owner]),
        "spec": _scaled(number, pods),
        "status": {"replicas": pods},
    }


def _scaled(number: int, pods: int) -> Object:
    selector = {"matchLabels": {"app": f"train-{number}"}}
    return {"replicas": pods, "selector": selector, "template": _template(number)}


def _job(number: int, pods: int, name: str = "", **meta: Any) -> Object:
    template = _template(number)
    template["spec"]["restartPolicy"] = "Never"
    selector = {"matchLabels": template["metadata"]["labels"]}
    return {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": meta_of(name or f"train-{number}", **meta),
        "spec": {"parallelism": pods, "selector": selector, "template": template},
        "status": {"active": pods},
    }


def _jobset(number: int) -> Object:
    return {
        "kind": "JobSet",
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "metadata": meta_of(f"train-{number}", annotations=RESERVE),
        "spec": {"replicatedJobs": []},
        "status": {},
    }
