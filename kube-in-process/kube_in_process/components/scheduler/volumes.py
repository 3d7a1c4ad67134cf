"""The scheduler's VolumeBinding: whether a pod's claims are bound, and which volumes they will get.

The rules are those of k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kube_in_process.components.objects import (
    annotations_of,
    deleting,
    key_of,
    name,
    namespace,
    uid,
)
from kube_in_process.components.scheduler.parking import VOLUMES
from kube_in_process.components.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    best_volume,
    bound_to,
    class_of,
    is_bound,
    is_delayed,
    reaches,
    volume_claims_of,
)
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Context
from kube_in_process.runtime.local import ApiFor
from kube_in_process.runtime.views import Views

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SUCH_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
BINDING_SECONDS = 600.0
"""VolumeBindingArgs.bindTimeoutSeconds, by default."""
_LOOKS = (0.05, 1.0)
"""Seconds between two looks at the claims: in the first second, and later."""
_TIMED_OUT = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'


class NoVolumes(Exception):
    """PreFilter refuses the pod: no node is looked at. The text is for its condition."""

    topics = (VOLUMES,)


class NotMounted(Exception):
    """The volumes of a pod were not bound in time. The text is for its condition."""


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """The volumes that the claims of a pod are bound to, and the claims that wait for a node."""

    volumes: tuple[Object | None, ...]
    delayed: tuple[Object, ...]

    @classmethod
    def of(cls, pod: Object, views: Views) -> PodVolumes | None:
        """Look at the claims of a pod; None if it has none. Raises NoVolumes."""
        wanted = list(volume_claims_of(pod)) if pod["spec"].get("volumes") else []
        if not wanted:
            return None
        claims = [_usable(pod, plain, views, generated=generated) for plain, generated in wanted]
        classes = {
            name(storage_class): storage_class for storage_class in views["storageclasses"].items()
        }
        waiting = [claim for claim in claims if not is_bound(claim)]
        if any(
            claim["spec"].get("volumeName") or not is_delayed(claim, classes) for claim in waiting
        ):
            raise NoVolumes(UNBOUND)
        volumes = views["persistentvolumes"]
        return cls(
            tuple(
                volumes.get("", claim["spec"]["volumeName"]) for claim in claims if is_bound(claim)
            ),
            tuple(waiting),
        )

    def reason_against(self, node: Object, views: Views) -> str:
        """Why the pod cannot have its volumes on the node; '' if it can."""
        for volume in self.volumes:
            if volume is None:
                return NO_SUCH_VOLUME
            if not reaches(volume, node):
                return OUT_OF_REACH
        return "" if self.choose(node, views) is not None else NO_VOLUME

    def choose(self, node: Object, views: Views) -> list[tuple[Object, Object | None]] | None:
        """For each claim that waits, a volume, or None where one will be made.

        None for all if a claim cannot have one.
        """
        chosen: list[tuple[Object, Object | None]] = []
        taken: set[str] = set()
        for claim in self.delayed:
            free = [
                volume for volume in views["persistentvolumes"].items() if uid(volume) not in taken
            ]
            volume = best_volume(free, claim, node)
            if volume is None and not _can_be_made(claim, views):
                return None
            if volume is not None:
                taken.add(uid(volume))
            chosen.append((claim, volume))
        return chosen


def _usable(pod: Object, plain: str, views: Views, *, generated: bool) -> Object:
    claim = views["persistentvolumeclaims"].get(namespace(pod), plain)
    shown = f'persistentvolumeclaim "{plain}"'
    if claim is None and generated:
        raise NoVolumes(f"waiting for ephemeral volume controller to create the {shown}")
    if claim is None:
        raise NoVolumes(f"{shown} not found")
    if (claim.get("status") or {}).get("phase") == "Lost":
        lost = claim["spec"].get("volumeName")
        raise NoVolumes(f'{shown} bound to non-existent persistentvolume "{lost}"')
    if deleting(claim):
        raise NoVolumes(f"{shown} is being deleted")
    return claim


def _can_be_made(claim: Object, views: Views) -> bool:
    storage_class = views["storageclasses"].get("", class_of(claim))
    return storage_class is not None and storage_class["provisioner"] != NO_PROVISIONER


class VolumeBinding:
    """Has the claims of a planned pod bound, before the pod is."""

    def __init__(self, context: Context, api: ApiFor, views: Views) -> None:
        self._context = context
        self._api = api
        self._views = views

    def steps(self, pod: Object, node: str) -> Iterator[float]:
        """Ask for the volumes, and wait for them. Raises NotMounted, NoVolumes or StatusError."""
        volumes = PodVolumes.of(pod, self._views)
        there = self._views["nodes"].get("", node)
        if volumes is None or there is None or not volumes.delayed:
            return
        for claim, volume in volumes.choose(there, self._views) or ():
            if volume is not None:
                self._api.update("persistentvolumes", bound_to(volume, claim))
            else:
                annotations = {**annotations_of(claim), SELECTED_NODE: node}
                metadata = {**claim["metadata"], "annotations": annotations}
                self._api.update("persistentvolumeclaims", {**claim, "metadata": metadata})
            yield 0.0
        yield from self._wait(volumes)

    def _wait(self, volumes: PodVolumes) -> Iterator[float]:
        begun = self._context.clock.monotonic()
        claims = self._views["persistentvolumeclaims"]
        while True:
            current = [claims.get(*key_of(claim)) for claim in volumes.delayed]
            if all(claim is not None and is_bound(claim) for claim in current):
                return
            passed = self._context.clock.monotonic() - begun
            if passed >= BINDING_SECONDS:
                raise NotMounted(_TIMED_OUT)
            yield _LOOKS[0] if passed < 1.0 else _LOOKS[1]
