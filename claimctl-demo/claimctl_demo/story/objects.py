"""The objects of the story, as a user would write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from claimctl.wire.base import Object
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RESERVE_ANNOTATION, STICKY_ANNOTATION

DEVICE_CLASS = "gpu.example.com"
ENTRY = "gpu"
"""The entry of a pod's resourceClaims."""
RUN_SECONDS = "kube-in-process/run-seconds"
"""On a pod: how long the embedded kubelet lets it run before it has finished."""

NAMESPACE = ("v1", "Namespace")
POD = ("v1", "Pod")
NODE = ("v1", "Node")
DEPLOYMENT = ("apps/v1", "Deployment")
STATEFUL_SET = ("apps/v1", "StatefulSet")
JOB = ("batch/v1", "Job")
CLAIM = ("resource.k8s.io/v1", "ResourceClaim")
TEMPLATE = ("resource.k8s.io/v1", "ResourceClaimTemplate")
PRIORITY_CLASS = ("scheduling.k8s.io/v1", "PriorityClass")
RESERVATION = ("claimctl.io/v1alpha1", "ClaimReservation")


def _claim_spec(api: str) -> Object:
    """v1beta1 has the fields of ``exactly`` in the request itself."""
    wanted = {"deviceClassName": DEVICE_CLASS}
    chosen = wanted if api.endswith("v1beta1") else {"exactly": wanted}
    return {"devices": {"requests": [{"name": "gpu", **chosen}]}}


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment or Job whose pods all use the claim ``claim``."""

    namespace: str
    name: str
    claim: str
    pods: int = 1
    reserve: bool = False
    """Whether the annotation asks claimctl to hold the claim."""
    group: str = ""
    """The PodGroup of its pods."""


def _object(kind: tuple[str, str], namespace: str, name: str, **rest: Any) -> Object:
    meta = {"namespace": namespace, "name": name} if namespace else {"name": name}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": meta, **rest}


def namespace(name: str) -> Object:
    return _object(NAMESPACE, "", name)


def claim(namespace: str, name: str, api: str = CLAIM[0]) -> Object:
    """``api`` is the version of resource.k8s.io that the cluster serves."""
    return _object((api, CLAIM[1]), namespace, name, spec=_claim_spec(api))


def claim_template(namespace: str, name: str) -> Object:
    return _object(TEMPLATE, namespace, name, spec={"spec": _claim_spec(TEMPLATE[0])})


def deployment(workload: Workload) -> Object:
    labels = {"app": workload.name}
    spec = {
        "replicas": workload.pods,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": _pod_spec(workload)},
    }
    return _annotated(_object(DEPLOYMENT, workload.namespace, workload.name, spec=spec), workload)


def plain_deployment(
    namespace: str,
    name: str,
    pods: int = 1,
    cpu: int = 0,
    annotations: dict[str, str] | None = None,
    **pod_spec: Any,
) -> Object:
    """A Deployment whose pods use no claim; ``cpu`` is what each of them requests."""
    labels = {"app": name}
    spec = {
        "replicas": pods,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": annotations or {}},
            "spec": {"containers": [_plain_container(cpu)], **pod_spec},
        },
    }
    return _object(DEPLOYMENT, namespace, name, spec=spec)


def sticky_set(namespace: str, name: str, pods: int, template: str, node: str) -> Object:
    """A StatefulSet on a node whose pods ask for sticky claims."""
    spec = _with_template(name, pods, template, node)
    spec["template"]["metadata"]["annotations"] = {STICKY_ANNOTATION: "*"}
    more = {"serviceName": name, "podManagementPolicy": "Parallel"}
    return _object(STATEFUL_SET, namespace, name, spec={**spec, **more})


def pod_of_set(owner: Object, name: str) -> Object:
    """A pod as the controller of StatefulSets would make it."""
    template, meta = owner["spec"]["template"], owner["metadata"]
    ordinal = {"apps.kubernetes.io/pod-index": name.rpartition("-")[2]}
    made = _object(POD, meta["namespace"], name, spec=template["spec"])
    made["metadata"] |= {
        "annotations": template["metadata"]["annotations"],
        "labels": {**template["metadata"]["labels"], **ordinal},
        "ownerReferences": [
            {
                **{"apiVersion": owner["apiVersion"], "kind": owner["kind"]},
                **{"name": meta["name"], "uid": "not-made-yet", "controller": True},
            }
        ],
    }
    return made


def generating(namespace: str, name: str, pods: int, template: str, node: str) -> Object:
    """A Deployment on a node for each of whose pods Kubernetes generates a claim."""
    return _object(DEPLOYMENT, namespace, name, spec=_with_template(name, pods, template, node))


def _with_template(name: str, pods: int, template: str, node: str) -> Object:
    """The spec of a workload on a node whose pods get claims of a template."""
    labels = {"app": name}
    container = {**_plain_container(0), "resources": {"claims": [{"name": ENTRY}]}}
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "resourceClaims": [{"name": ENTRY, "resourceClaimTemplateName": template}],
        "containers": [container],
    }
    return {
        "replicas": pods,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }


def pod_on(namespace: str, node: str, cpu: int) -> Object:
    """A pod without an owner that takes up ``cpu`` of the node."""
    spec = {"nodeName": node, "containers": [_plain_container(cpu)]}
    return _object(POD, namespace, f"busy-{node}", spec=spec)


def _plain_container(cpu: int) -> Object:
    requests = {"cpu": str(cpu)} if cpu else {}
    return {"name": "main", "image": "example.com/web:1", "resources": {"requests": requests}}


def priority_class(name: str, value: int) -> Object:
    return _object(PRIORITY_CLASS, "", name, value=value)


def job(workload: Workload, *, at_once: int, run_seconds: float) -> Object:
    template = {
        "metadata": {"annotations": {RUN_SECONDS: str(run_seconds)}},
        "spec": {**_pod_spec(workload), "restartPolicy": "Never"},
    }
    spec = {"completions": workload.pods, "parallelism": at_once, "template": template}
    return _annotated(_object(JOB, workload.namespace, workload.name, spec=spec), workload)


def _annotated(body: Object, workload: Workload) -> Object:
    if workload.reserve:
        body["metadata"]["annotations"] = {RESERVE_ANNOTATION: "*"}
    return body


def _pod_spec(workload: Workload) -> Object:
    group = {"schedulingGroup": {"podGroupName": workload.group}} if workload.group else {}
    return {
        **group,
        "containers": [
            {
                "name": "main",
                "image": "example.com/train:1",
                "resources": {"claims": [{"name": ENTRY}]},
            }
        ],
        "resourceClaims": [{"name": ENTRY, "resourceClaimName": workload.claim}],
    }


def pod_entry(pod: Pod) -> Object:
    """The entry of a pod in a claim's list."""
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}


def reservation(
    workload: Workload, kind: tuple[str, str], *, template: str = "", **spec: Any
) -> Object:
    """A ClaimReservation of ``workload.claim``; with ``template`` claimctl creates the claim."""
    group = kind[0].partition("/")[0]
    body: Object = {
        "resourceClaimName": workload.claim,
        "workloadRef": {"apiGroup": group, "kind": kind[1], "name": workload.name},
        **spec,
    }
    if template:
        body["resourceClaimTemplateName"] = template
    return _object(RESERVATION, workload.namespace, workload.claim, spec=body)
