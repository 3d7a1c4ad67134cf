"""The PodGroup that the Job controller makes for a Job (WorkloadWithJob, KEP-5547).

By the text of the enhancement, second alpha: a basic PodGroup for every Job whose pod template
names none, set on the pods and not in the template. While the Job is suspended, it has no PodGroup.
"""

from __future__ import annotations

from kube_in_process.components.objects import (
    controller_reference,
    controller_uid,
    deleting,
    key_of,
    name,
    namespace,
    uid,
)
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component

TEMPLATE = "pgt"


def group_of(job: Object) -> str:
    """The name of the Job's PodGroup: ``<workload>-<template>-<hash>``."""
    return f"{name(job)}-{TEMPLATE}-{uid(job)[:5]}"


def pod_in_group(controller: Component[tuple[str, str, str]], job: Object, pod: Object) -> Object:
    """The pod that the Job is about to create, in the Job's PodGroup, which is made for it."""
    spec = pod["spec"]
    if not controller.context.features.job_pod_groups or spec.get("schedulingGroup"):
        return pod
    if controller.api.find("podgroups", namespace(job), group_of(job)) is None:
        controller.api.create("podgroups", _group(job))
    return {**pod, "spec": {**spec, "schedulingGroup": {"podGroupName": group_of(job)}}}


def drop_group(controller: Component[tuple[str, str, str]], job: Object) -> None:
    """Delete the PodGroup that the Job controller made for a Job that is suspended now."""
    if not controller.context.features.job_pod_groups:
        return
    group = controller.api.find("podgroups", namespace(job), group_of(job))
    if group is not None and controller_uid(group) == (uid(job),) and not deleting(group):
        controller.api.delete("podgroups", *key_of(group))


def _group(job: Object) -> Object:
    asked = (job["spec"].get("scheduling") or {}).get("resourceClaims")
    claims = {"resourceClaims": asked} if asked else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": group_of(job),
            "namespace": namespace(job),
            "ownerReferences": [controller_reference(job)],
        },
        "spec": {"schedulingPolicy": {"basic": {}}, **claims},
    }
