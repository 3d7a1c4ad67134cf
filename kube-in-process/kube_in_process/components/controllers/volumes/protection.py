"""Finalizers of claims that pods use and of volumes that are bound, and claims made for pods."""

from __future__ import annotations

from contextlib import suppress

from kube_in_process.components.objects import (
    controller_reference,
    deleting,
    finalizers,
    name,
    namespace,
    without,
)
from kube_in_process.components.pods import node_name
from kube_in_process.components.volumes import uses_volume_claims
from kube_in_process.errors import NotFound, StatusError
from kube_in_process.kinds.volume_admission import CLAIM_FINALIZER, VOLUME_FINALIZER
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change, Key


class ClaimProtection(Component[Key]):
    """Lets a claim go when no pod on a node uses it."""

    name = "pvc-protection-controller"

    def watch(self) -> None:
        self.views["pods"].index("volumes", uses_volume_claims)
        self.views["persistentvolumeclaims"].subscribe(lambda change: self.queue.add(change.key))
        self.views["pods"].subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        if change.new is None:
            for claim in uses_volume_claims(change.object):
                space, _, plain = claim.partition("/")
                self.queue.add((space, plain))

    def sync(self, key: Key) -> None:
        claim = self.views["persistentvolumeclaims"].get(*key)
        if claim is None or not deleting(claim) or CLAIM_FINALIZER not in finalizers(claim):
            return
        users = self.views["pods"].by("volumes", "/".join(key))
        if not any(node_name(pod) for pod in users):
            _release(self, "persistentvolumeclaims", claim, CLAIM_FINALIZER)


class VolumeProtection(Component[Key]):
    """Lets a volume go when it is not bound."""

    name = "pv-protection-controller"

    def watch(self) -> None:
        self.views["persistentvolumes"].subscribe(lambda change: self.queue.add(change.key))

    def sync(self, key: Key) -> None:
        volume = self.views["persistentvolumes"].get(*key)
        if volume is None or not deleting(volume) or VOLUME_FINALIZER not in finalizers(volume):
            return
        if (volume.get("status") or {}).get("phase") != "Bound":
            _release(self, "persistentvolumes", volume, VOLUME_FINALIZER)


def _release(controller: Component[Key], plural: str, obj: Object, finalizer: str) -> None:
    kept = without(finalizers(obj), finalizer)
    metadata = {**obj["metadata"], "finalizers": kept}
    with suppress(NotFound):
        controller.api.update(plural, {**obj, "metadata": metadata})


class EphemeralVolumes(Component[Key]):
    """Makes the claims of pods with ephemeral volumes."""

    name = "ephemeral-volume-controller"

    def watch(self) -> None:
        self.views["pods"].subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        volumes = change.object["spec"].get("volumes") or ()
        if change.old is None and any(volume.get("ephemeral") for volume in volumes):
            self.queue.add(change.key)

    def sync(self, key: Key) -> None:
        pod = self.views["pods"].get(*key)
        if pod is None or deleting(pod):
            return
        for volume in pod["spec"].get("volumes") or ():
            if volume.get("ephemeral"):
                self._make(pod, volume)

    def _make(self, pod: Object, volume: Object) -> None:
        template = volume["ephemeral"]["volumeClaimTemplate"]
        given = template.get("metadata") or {}
        metadata = {
            **given,
            "name": f"{name(pod)}-{volume['name']}",
            "namespace": namespace(pod),
            "ownerReferences": [controller_reference(pod)],
        }
        body = {"metadata": metadata, "spec": template["spec"]}
        try:
            self.api.create("persistentvolumeclaims", body)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
