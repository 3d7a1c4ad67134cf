"""The provisioner that the cluster plays: it makes a volume for each claim of its classes."""

from __future__ import annotations

from kube_in_process.components.objects import annotations_of, deleting, key_of, name, uid
from kube_in_process.components.volumes import (
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    claim_reference,
    class_of,
)
from kube_in_process.errors import StatusError
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Key

_ASKED = "volume.kubernetes.io/storage-provisioner"
_WAITING = "WaitForFirstConsumer"


class VolumeProvisioner(Component[Key]):
    name = "volume-provisioner"
    manager = PROVISIONER
    reporter = PROVISIONER

    def watch(self) -> None:
        claims = self.views["persistentvolumeclaims"]
        claims.subscribe(lambda change: self.queue.add(change.key))

    def sync(self, key: Key) -> None:
        claim = self.views["persistentvolumeclaims"].get(*key)
        if claim is None or deleting(claim) or claim["spec"].get("volumeName"):
            return
        annotations = annotations_of(claim)
        storage_class = self.views["storageclasses"].get("", class_of(claim))
        if annotations.get(_ASKED) != PROVISIONER or storage_class is None:
            return
        node = annotations.get(SELECTED_NODE)
        if storage_class.get("volumeBindingMode") == _WAITING and not node:
            return
        self._make(claim, storage_class)

    def _make(self, claim: Object, storage_class: Object) -> None:
        volume = _volume(claim, storage_class)
        try:
            self.api.create("persistentvolumes", volume)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            return
        text = f"Successfully provisioned volume {name(volume)}"
        self.event(claim, "Normal", "ProvisioningSucceeded", text)


def _volume(claim: Object, storage_class: Object) -> Object:
    """The volume for a claim: as large as it asks, and reached from every node."""
    plain = f"pvc-{uid(claim)}"
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return {
        "metadata": {"name": plain, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": requests.get("storage", "0")},
            "accessModes": claim["spec"].get("accessModes"),
            "claimRef": claim_reference(claim),
            "csi": {"driver": PROVISIONER, "volumeHandle": "/".join(key_of(claim))},
            "persistentVolumeReclaimPolicy": storage_class["reclaimPolicy"],
            "storageClassName": name(storage_class),
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
        },
    }
