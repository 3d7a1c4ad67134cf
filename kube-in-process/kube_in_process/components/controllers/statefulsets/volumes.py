"""The PersistentVolumeClaims of a StatefulSet: one for each of its templates and each pod."""

from __future__ import annotations

from collections.abc import Iterator

from kube_in_process.components.objects import (
    controller_reference,
    name,
    namespace,
    owners,
    uid,
)
from kube_in_process.objects import Object


def volume_claims(workload: Object, number: int) -> Iterator[Object]:
    """The claims of the pod with this ordinal.

    They have an owner, the StatefulSet, only if it wants them deleted with it.
    """
    selected = (workload["spec"]["selector"].get("matchLabels")) or {}
    for template in workload["spec"].get("volumeClaimTemplates") or []:
        labels = template["metadata"].get("labels") or {}
        meta: Object = {
            "name": claim_name(template, workload, number),
            "namespace": namespace(workload),
            "labels": {**labels, **selected},
        }
        if template["metadata"].get("annotations"):
            meta["annotations"] = template["metadata"]["annotations"]
        if _deletes(workload, "whenDeleted"):
            meta["ownerReferences"] = [controller_reference(workload)]
        yield {"metadata": meta, "spec": template["spec"]}


def retained(claim: Object, workload: Object, pod: Object, *, surplus: bool) -> list[Object]:
    """The owners of a claim, by which it is deleted with the StatefulSet, or with a surplus pod.

    The rules are those of upstream's stateful_set_utils.go.
    """
    own = {uid(workload), uid(pod)}
    others = [owner for owner in owners(claim) if owner["uid"] not in own]
    if surplus and _deletes(workload, "whenScaled"):
        return [*others, controller_reference(pod)]
    if _deletes(workload, "whenDeleted"):
        return [*others, controller_reference(workload)]
    return others


def _deletes(workload: Object, when: str) -> bool:
    policy = workload["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(policy.get(when) == "Delete")


def with_volumes(spec: Object, workload: Object, number: int) -> Object:
    """The spec of a pod with a volume for each claim, in place of volumes of the same names."""
    volumes = [
        {
            "name": name(template),
            "persistentVolumeClaim": {"claimName": claim_name(template, workload, number)},
        }
        for template in workload["spec"].get("volumeClaimTemplates") or []
    ]
    if not volumes:
        return spec
    taken = {volume["name"] for volume in volumes}
    others = (volume for volume in spec.get("volumes") or [] if volume["name"] not in taken)
    return {**spec, "volumes": [*volumes, *others]}


def claim_name(template: Object, workload: Object, number: int) -> str:
    return f"{name(template)}-{name(workload)}-{number}"
