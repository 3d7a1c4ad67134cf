"""The controller that binds PersistentVolumeClaims to PersistentVolumes.

The rules are those of k8s.io/kubernetes/pkg/controller/volume/persistentvolume (pv_controller.go).
"""

from __future__ import annotations

from contextlib import suppress

from kube_in_process.components.objects import (
    annotations_of,
    deleting,
    key_of,
    name,
    uid,
)
from kube_in_process.components.volumes import (
    BOUND,
    BY_CONTROLLER,
    NO_PROVISIONER,
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    best_volume,
    bound_to,
    class_of,
    is_delayed,
    refers_to,
    satisfies,
    uses_volume_claims,
)
from kube_in_process.errors import NotFound
from kube_in_process.kinds.volume_admission import default_class
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change
from kube_in_process.storage.requests import DeleteOptions

_PROVISIONERS = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
_NO_VOLUME = "no persistent volumes available for this claim and no storage class is set"
_WAITS = "waiting for first consumer to be created before binding"
_LOST = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"

Task = tuple[str, str, str]
"""('claim', namespace, name) or ('volume', '', name)."""


class VolumeBinder(Component[Task]):
    name = "persistentvolume-binder"
    reporter = "persistentvolume-controller"

    def watch(self) -> None:
        self._claims = self.views["persistentvolumeclaims"]
        self._volumes = self.views["persistentvolumes"]
        self.views["pods"].index("volumes", uses_volume_claims)
        self._claims.subscribe(self._claim_changed)
        self._volumes.subscribe(self._volume_changed)
        self.views["storageclasses"].subscribe(lambda _: self._look_again())

    def _claim_changed(self, change: Change) -> None:
        self.queue.add(("claim", *change.key))
        volume = change.object["spec"].get("volumeName")
        if volume:
            self.queue.add(("volume", "", volume))
        if change.new is None:
            for other in self._volumes.items():
                if refers_to(other, change.object):
                    self.queue.add(("volume", "", name(other)))

    def _volume_changed(self, change: Change) -> None:
        self.queue.add(("volume", *change.key))
        reference = change.object["spec"].get("claimRef")
        if reference:
            self.queue.add(("claim", reference["namespace"], reference["name"]))
        elif change.new is not None:
            self._look_again()

    def _look_again(self) -> None:
        """Look at the claims that wait for a volume."""
        for claim in self._claims.items():
            if BOUND not in annotations_of(claim):
                self.queue.add(("claim", *key_of(claim)))

    def sync(self, key: Task) -> None:
        kind, space, plain = key
        if kind == "volume":
            volume = self._volumes.get("", plain)
            if volume is not None:
                self._sync_volume(volume)
            return
        claim = self._claims.get(space, plain)
        if claim is not None and BOUND in annotations_of(claim):
            self._check_bound(claim)
        elif claim is not None and not deleting(claim):
            self._bind_somehow(claim)

    # Claims

    def _check_bound(self, claim: Object) -> None:
        """Keep a bound claim, or say that its volume is lost."""
        volume = self._volumes.get("", claim["spec"].get("volumeName") or "")
        if volume is not None and volume["spec"].get("claimRef") is None:
            self._bind(claim, volume)
        elif volume is not None and refers_to(volume, claim):
            self._show_bound(claim, volume)
        elif (claim.get("status") or {}).get("phase") != "Lost":
            self.event(claim, "Warning", "ClaimLost", _LOST)
            self._write_claim_status(claim, {"phase": "Lost"})

    def _bind_somehow(self, claim: Object) -> None:
        wanted = claim["spec"].get("volumeName")
        if wanted:
            self._bind_named(claim, self._volumes.get("", wanted))
            return
        classes = {
            name(storage_class): storage_class
            for storage_class in self.views["storageclasses"].items()
        }
        delayed = is_delayed(claim, classes)
        volume = best_volume(self._volumes.items(), claim, only_named=delayed)
        if volume is not None:
            self._bind(claim, volume)
        elif claim["spec"].get("storageClassName") is None and default_class(classes.values()):
            spec = {**claim["spec"], "storageClassName": default_class(classes.values())}
            self.api.update("persistentvolumeclaims", {**claim, "spec": spec})
        elif delayed and SELECTED_NODE not in annotations_of(claim):
            self._say_why_it_waits(claim)
        elif class_of(claim):
            self._ask_for_volume(claim, classes.get(class_of(claim)))
        else:
            self.event(claim, "Normal", "FailedBinding", _NO_VOLUME)

    def _bind_named(self, claim: Object, volume: Object | None) -> None:
        if volume is None:
            return
        if volume["spec"].get("claimRef") is not None and not refers_to(volume, claim):
            text = f'volume "{name(volume)}" already bound to a different claim.'
            self.event(claim, "Warning", "FailedBinding", text)
        elif volume["spec"].get("claimRef") is None and not satisfies(volume, claim):
            text = f'Cannot bind to requested volume "{name(volume)}"'
            self.event(claim, "Warning", "VolumeMismatch", text)
        else:
            self._bind(claim, volume)

    def _say_why_it_waits(self, claim: Object) -> None:
        pods = self.views["pods"].by("volumes", "/".join(key_of(claim)))
        if pods:
            text = f"waiting for pod {name(pods[0])} to be scheduled"
            self.event(claim, "Normal", "WaitForPodScheduled", text)
        else:
            self.event(claim, "Normal", "WaitForFirstConsumer", _WAITS)

    def _ask_for_volume(self, claim: Object, storage_class: Object | None) -> None:
        if storage_class is None:
            text = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            self.event(claim, "Warning", "ProvisioningFailed", text)
            return
        provisioner = storage_class["provisioner"]
        if provisioner == NO_PROVISIONER:
            return
        annotations = {**annotations_of(claim), **dict.fromkeys(_PROVISIONERS, provisioner)}
        if annotations != annotations_of(claim):
            metadata = {**claim["metadata"], "annotations": annotations}
            claim = self.api.update("persistentvolumeclaims", {**claim, "metadata": metadata})
        text = (
            "Waiting for a volume to be created either by the external provisioner "
            f"'{provisioner}' or manually by the system administrator. If volume creation is "
            "delayed, please verify that the provisioner is running and correctly registered."
        )
        self.event(claim, "Normal", "ExternalProvisioning", text)

    # Binding

    def _bind(self, claim: Object, volume: Object) -> None:
        """Write the volume first, then the claim, as upstream."""
        if volume["spec"].get("claimRef", {}).get("uid") != uid(claim):
            volume = self.api.update("persistentvolumes", bound_to(volume, claim))
        self._write_phase(volume, "Bound")
        annotations = dict(annotations_of(claim))
        if not claim["spec"].get("volumeName"):
            annotations[BY_CONTROLLER] = "yes"
        annotations[BOUND] = "yes"
        metadata = {**claim["metadata"], "annotations": annotations}
        spec = {**claim["spec"], "volumeName": name(volume)}
        wanted = {**claim, "metadata": metadata, "spec": spec}
        self._show_bound(self.api.update("persistentvolumeclaims", wanted), volume)

    def _show_bound(self, claim: Object, volume: Object) -> None:
        shown = {
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes"),
            "capacity": volume["spec"]["capacity"],
        }
        if (claim.get("status") or {}).get("phase") != "Bound":
            self._write_claim_status(claim, shown)

    def _write_claim_status(self, claim: Object, status: Object) -> None:
        self.api.update("persistentvolumeclaims", {**claim, "status": status}, "status")

    def _write_phase(self, volume: Object, phase: str) -> None:
        current = self._volumes.get("", name(volume)) or volume
        status = current.get("status") or {}
        if status.get("phase") != phase:
            new = {**status, "phase": phase, "lastPhaseTransitionTime": self.context.now()}
            self.api.update("persistentvolumes", {**current, "status": new}, "status")

    # Volumes

    def _sync_volume(self, volume: Object) -> None:
        reference = volume["spec"].get("claimRef")
        if reference is None or not reference.get("uid"):
            self._write_phase(volume, "Available")
            return
        claim = self._claims.get(reference["namespace"], reference["name"])
        if claim is None or uid(claim) != reference["uid"]:
            self._release(volume)
        elif claim["spec"].get("volumeName") == name(volume):
            self._write_phase(volume, "Bound")
        elif not claim["spec"].get("volumeName"):
            self.queue.add(("claim", *key_of(claim)))
        elif PROVISIONED_BY in annotations_of(volume):
            self._release(volume)

    def _release(self, volume: Object) -> None:
        """The claim is gone: the volume stays, or its provisioner deletes it."""
        self._write_phase(volume, "Released")
        ours = annotations_of(volume).get(PROVISIONED_BY) == PROVISIONER
        policy = volume["spec"].get("persistentVolumeReclaimPolicy")
        if ours and policy == "Delete" and not deleting(volume):
            with suppress(NotFound):
                options = DeleteOptions(uid(volume))
                self.api.delete("persistentvolumes", "", name(volume), options)
