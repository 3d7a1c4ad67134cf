"""The PersistentVolumeClaims of a StatefulSet: one for each of its templates and each pod."""

from __future__ import annotations

from collections.abc import Iterator

from kube_in_process.components.objects import controller_reference, name, namespace
from kube_in_process.objects import Object


def volume_claims(workload: Object, number: int) -> Iterator[Object]:
    """The claims of the pod with this ordinal. They stay when the pod goes.

    They have an owner, the StatefulSet, only if it wants them deleted with it.
    """
    retention = workload["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    selected = (workload["spec"]["selector"].get("matchLabels")) or {}
    for template in workload["spec"].get("volumeClaimTemplates") or []:
        labels = template["metadata"].get("labels") or {}
        meta: Object = {
            "name": _claim_name(template, workload, number),
            "namespace": namespace(workload),
            "labels": {**labels, **selected},
        }
        if template["metadata"].get("annotations"):
            meta["annotations"] = template["metadata"]["annotations"]
        if retention.get("whenDeleted") == "Delete":
            meta["ownerReferences"] = [controller_reference(workload)]
        yield {"metadata": meta, "spec": template["spec"]}


def with_volumes(spec: Object, workload: Object, number: int) -> Object:
    """The spec of a pod with a volume for each claim, in place of volumes of the same names."""
    volumes = [
        {
            "name": name(template),
            "persistentVolumeClaim": {"claimName": _claim_name(template, workload, number)},
        }
        for template in workload["spec"].get("volumeClaimTemplates") or []
    ]
    if not volumes:
        return spec
    taken = {volume["name"] for volume in volumes}
    others = (volume for volume in spec.get("volumes") or [] if volume["name"] not in taken)
    return {**spec, "volumes": [*volumes, *others]}


def _claim_name(template: Object, workload: Object, number: int) -> str:
    return f"{name(template)}-{name(workload)}-{number}"
