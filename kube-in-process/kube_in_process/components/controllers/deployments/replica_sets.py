"""The ReplicaSets of a Deployment as objects: a new one, and the changes of a known one."""

from __future__ import annotations

from kube_in_process.components.controllers.deployments.rollout import (
    DESIRED,
    HASH_LABEL,
    HISTORY,
    MAXIMUM,
    REVISION,
    max_replicas,
    replicas,
)
from kube_in_process.components.objects import (
    annotations_of,
    controller_reference,
    labels,
    name,
    namespace,
    short_hash,
    with_metadata,
)
from kube_in_process.objects import Object

_OWN = (
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
)
"""The annotations that a ReplicaSet does not get from its Deployment."""


def revision_of(replica_set: Object) -> int:
    return int(annotations_of(replica_set).get(REVISION, "0"))


def sizes(deployment: Object) -> dict[str, str]:
    """The annotations with the sizes that the Deployment wants."""
    return {DESIRED: str(replicas(deployment)), MAXIMUM: str(max_replicas(deployment))}


def new_replica_set(deployment: Object, size: int, revision: int) -> Object:
    """The ReplicaSet of the Deployment's present template."""
    template = deployment["spec"]["template"]
    collisions = (deployment.get("status") or {}).get("collisionCount", 0)
    digest = short_hash([template, collisions] if collisions else template)
    marked = {**labels({"metadata": template.get("metadata") or {}}), HASH_LABEL: digest}
    selector = deployment["spec"]["selector"]
    fixed = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
    annotations = {
        **_copied(deployment),
        **sizes(deployment),
        REVISION: str(revision),
    }
    metadata = {
        "name": f"{name(deployment)}-{digest}",
        "namespace": namespace(deployment),
        "labels": marked,
        "annotations": annotations,
        "ownerReferences": [controller_reference(deployment)],
    }
    spec = {
        "replicas": size,
        "selector": {**selector, "matchLabels": fixed},
        "template": {
            **template,
            "metadata": {**(template.get("metadata") or {}), "labels": marked},
        },
    }
    if deployment["spec"].get("minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def known_replica_set(deployment: Object, known: Object, revision: int) -> Object | None:
    """The ReplicaSet with the Deployment's annotations and minReadySeconds; None if it has them."""
    marks = _marks(deployment, known, revision)
    seconds = deployment["spec"].get("minReadySeconds")
    if marks == annotations_of(known) and seconds == known["spec"].get("minReadySeconds"):
        return None
    spec = {key: value for key, value in known["spec"].items() if key != "minReadySeconds"}
    if seconds is not None:
        spec["minReadySeconds"] = seconds
    return with_metadata({**known, "spec": spec}, annotations=marks)


def _copied(deployment: Object) -> dict[str, str]:
    """The annotations that a ReplicaSet gets from its Deployment."""
    return {key: value for key, value in annotations_of(deployment).items() if key not in _OWN}


def _marks(deployment: Object, new: Object, revision: int) -> dict[str, str]:
    """The annotations of an existing ReplicaSet. Its history lists earlier revisions of its own."""
    marks = {**annotations_of(new), **_copied(deployment)}
    before = annotations_of(new).get(REVISION)
    if revision_of(new) >= revision:
        return marks
    marks[REVISION] = str(revision)
    if before is not None:
        known = [revision for revision in marks.get(HISTORY, "").split(",") if revision]
        marks[HISTORY] = ",".join([*known, before])
    return marks
