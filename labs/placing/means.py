"""What may keep the pods of one owner off a node."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kube_in_process.real.servers.nodes import NODE

from claimctl.wire.base import Object
from claimctl.wire.traces import AVOID_TAINT
from claimctl_demo.documents import DocumentClient, Version
from labs.cells import CELL_LABEL, LONG_RUN, document

RECORD: Version = ("claimctl.io/v1alpha1", "RescheduleRecord")
IMAGE = "registry.example/web:1"


class Means(StrEnum):
    NOTHING = "nothing"
    HINT = "taint, PreferNoSchedule"
    TAINT = "taint, NoSchedule"
    GUARD = "a pod with anti-affinity"
    ADMISSION = "admission policy"


@dataclass(frozen=True, slots=True)
class PlacementCell:
    """Two nodes: ``nodes[0]`` is to be avoided, and is the emptier one."""

    number: int
    means: Means
    room: bool
    """Whether the other node has room for the owner's pods."""

    @property
    def namespace(self) -> str:
        return f"cell-{self.number}"


def cells(*, admission: bool) -> list[PlacementCell]:
    """All cells; those of the admission policy only where it is served."""
    chosen = [means for means in Means if admission or means is not Means.ADMISSION]
    pairs = [(means, room) for means in chosen for room in (True, False)]
    return [PlacementCell(number, *pair) for number, pair in enumerate(pairs)]


async def apply(client: DocumentClient, cell: PlacementCell, node: str, owner: str) -> None:
    """Close the node to the pods of the owner (a ReplicaSet's UID)."""
    match cell.means:
        case Means.HINT | Means.TAINT:
            effect = "PreferNoSchedule" if cell.means is Means.HINT else "NoSchedule"
            taint = {"key": AVOID_TAINT, "value": "claimctl-measured", "effect": effect}
            await client.patch(NODE, "", node, {"spec": {"taints": [taint]}})
        case Means.GUARD:
            await client.create(_guard(cell, node))
        case Means.ADMISSION:
            record = {"metadata": {"name": cell.namespace}}
            await client.create({"apiVersion": RECORD[0], "kind": RECORD[1], **record})
            entry = {"ownerUID": owner, "nodes": [node]}
            status = {"status": {"avoidances": [entry]}}
            await client.patch_status(RECORD, "", cell.namespace, status)


def _guard(cell: PlacementCell, node: str) -> Object:
    """A pod that is on the node already and does not bear the owner's pods beside it."""
    term = {
        "labelSelector": {"matchLabels": {"app": "owner"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spec = {
        "nodeName": node,
        "containers": [{"name": "main", "image": IMAGE}],
        "affinity": {"podAntiAffinity": required},
    }
    meta = {"name": "guard", "namespace": cell.namespace, "annotations": LONG_RUN}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def deployment(space: str, name: str, replicas: int, cpu: str = "100m", **more: Any) -> Object:
    """A Deployment whose pods use only the nodes of the cell."""
    labels = {"app": name}
    container = {"name": "main", "image": IMAGE, "resources": {"requests": {"cpu": cpu}}}
    annotations = LONG_RUN | more.pop("annotations", {})
    spec = {"nodeSelector": {CELL_LABEL: space}, "containers": [container], **more}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return document("apps/v1", "Deployment", name, space, body)
