"""The objects that the users in scenarios create."""

from __future__ import annotations

from typing import Any

from tests.e2e.harness import DEVICE_CLASS, NAMESPACE

Body = dict[str, Any]


def claim(name: str = "slice", device_class: str = DEVICE_CLASS) -> Body:
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": _devices(device_class)}


def claim_template(name: str = "template", device_class: str = DEVICE_CLASS) -> Body:
    spec = {"spec": _devices(device_class)}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _devices(device_class: str) -> Body:
    return {
        "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": device_class}}]}
    }


def deployment(
    name: str = "train", replicas: int = 1, claim: str = "slice", **annotations: str
) -> Body:
    return {
        "metadata": _meta(name, annotations),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": _template(name, claim),
        },
    }


def stateful_set(
    name: str = "train", replicas: int = 1, claim: str = "slice", **annotations: str
) -> Body:
    body = deployment(name, replicas, claim, **annotations)
    body["spec"] |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return body


def job(
    name: str = "train",
    pods: int = 1,
    claim: str = "slice",
    seconds: float | None = None,
    **annotations: str,
) -> Body:
    template = _template(name, claim)
    template["spec"]["restartPolicy"] = "Never"
    if seconds is not None:
        template["metadata"]["annotations"] = {"kube-in-process/run-seconds": str(seconds)}
    return {
        "metadata": _meta(name, annotations),
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }


def in_group(body: Body, group: str = "train") -> Body:
    """The workload with its pods in a PodGroup."""
    body["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": group}
    return body


def pod_group(name: str, *claims: str) -> Body:
    shared = [{"name": "gpu", "resourceClaimName": claim} for claim in claims]
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": shared},
    }


def reservation(
    name: str = "train-slice",
    kind: str = "Deployment",
    workload: str = "train",
    claim: str = "slice",
    **spec: Any,
) -> Body:
    group = "batch" if kind == "Job" else "apps"
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "resourceClaimName": claim,
            "workloadRef": {"apiGroup": group, "kind": kind, "name": workload},
            **spec,
        },
    }


def _meta(name: str, annotations: dict[str, str]) -> Body:
    named = {f"claimctl.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"name": name, "namespace": NAMESPACE, "annotations": named}


def _template(name: str, claim: str) -> Body:
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "containers": [
                {"name": "main", "image": "train", "resources": {"claims": [{"name": "gpu"}]}}
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
        },
    }
