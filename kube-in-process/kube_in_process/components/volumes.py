"""PersistentVolumeClaims and PersistentVolumes: which claim a volume suits. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from kube_in_process.components.fit import node_matches
from kube_in_process.components.objects import (
    annotations_of,
    deleting,
    labels,
    matches,
    name,
    namespace,
    uid,
)
from kube_in_process.objects import Object
from kube_in_process.text.quantity import number

PROVISIONER = "volumes.kube-in-process"
"""The only provisioner that the cluster plays."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"
BOUND = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def class_of(obj: Object) -> str:
    """The name of the StorageClass of a claim or a volume; '' for none."""
    given = annotations_of(obj).get(_BETA_CLASS)
    return str(given if given is not None else obj["spec"].get("storageClassName") or "")


def is_delayed(claim: Object, classes: Mapping[str, Object]) -> bool:
    """Whether the claim waits for a pod before it is bound."""
    storage_class = classes.get(class_of(claim))
    return (
        storage_class is not None
        and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    )


def is_bound(claim: Object) -> bool:
    return bool(claim["spec"].get("volumeName")) and BOUND in annotations_of(claim)


def refers_to(volume: Object, claim: Object) -> bool:
    """Whether the volume names the claim; it may not know its UID yet."""
    reference = volume["spec"].get("claimRef")
    if reference is None:
        return False
    if (reference.get("namespace"), reference.get("name")) != (namespace(claim), name(claim)):
        return False
    return reference.get("uid") in (None, "", uid(claim))


def satisfies(volume: Object, claim: Object) -> bool:
    """Whether the volume is large enough, of the class and mode, and has the access modes."""
    return (
        number(volume["spec"]["capacity"].get("storage")) >= _requested(claim)
        and class_of(volume) == class_of(claim)
        and _mode(volume) == _mode(claim)
        and set(claim["spec"].get("accessModes") or ())
        <= set(volume["spec"].get("accessModes") or ())
    )


def reaches(volume: Object, node: Object) -> bool:
    """Whether pods on the node can use the volume."""
    affinity = volume["spec"].get("nodeAffinity") or {}
    return node_matches(affinity.get("required"), node)


def best_volume(
    volumes: Iterable[Object],
    claim: Object,
    node: Object | None = None,
    *,
    only_named: bool = False,
) -> Object | None:
    """The volume that names the claim, else the smallest free one that suits; None for none.

    Args:
        volumes: all volumes.
        claim: a claim that is not bound.
        node: the node from which the volume must be reached, if it is known.
        only_named: whether free volumes do not count.
    """
    free: list[Object] = []
    for volume in volumes:
        if refers_to(volume, claim):
            if satisfies(volume, claim) and (node is None or reaches(volume, node)):
                return volume
        elif not only_named and _is_free(volume) and _suits(volume, claim, node):
            free.append(volume)
    return min(free, key=lambda volume: number(volume["spec"]["capacity"]["storage"]), default=None)


def _is_free(volume: Object) -> bool:
    phase = (volume.get("status") or {}).get("phase")
    return volume["spec"].get("claimRef") is None and phase == "Available" and not deleting(volume)


def _suits(volume: Object, claim: Object, node: Object | None) -> bool:
    selector = claim["spec"].get("selector")
    if selector is not None and not matches(selector, labels(volume)):
        return False
    return satisfies(volume, claim) and (node is None or reaches(volume, node))


def _requested(claim: Object) -> Decimal:
    return number(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage"))


def _mode(obj: Object) -> str:
    return str(obj["spec"].get("volumeMode") or "Filesystem")


def claim_reference(claim: Object) -> Object:
    return {
        "kind": "PersistentVolumeClaim",
        "namespace": namespace(claim),
        "name": name(claim),
        "uid": uid(claim),
        "apiVersion": "v1",
        "resourceVersion": claim["metadata"]["resourceVersion"],
    }


def bound_to(volume: Object, claim: Object) -> Object:
    """The volume as it is written to bind it to the claim."""
    metadata = volume["metadata"]
    if volume["spec"].get("claimRef") is None:
        metadata = {**metadata, "annotations": {**annotations_of(volume), BY_CONTROLLER: "yes"}}
    spec = {**volume["spec"], "claimRef": claim_reference(claim)}
    return {**volume, "metadata": metadata, "spec": spec}


def volume_claims_of(pod: Object) -> Iterator[tuple[str, bool]]:
    """The names of the PersistentVolumeClaims of a pod, and whether they are made for it."""
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"]["claimName"], False
        elif volume.get("ephemeral"):
            yield f"{name(pod)}-{volume['name']}", True


def uses_volume_claims(pod: Object) -> tuple[str, ...]:
    """Index values: ``namespace/name`` of the PersistentVolumeClaims of a pod."""
    if not pod["spec"].get("volumes"):
        return ()
    return tuple(f"{namespace(pod)}/{plain}" for plain, _ in volume_claims_of(pod))
