"""Where the volumes of a pod can be used, by the node affinity of its PersistentVolumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claimctl.reschedule.shapes.scheduling import PersistentVolume, SchedulingPod, VolumeClaim
from claimctl.wire.claims import NodeSelector


class UnknownVolume(Exception):
    """A volume of the pod, or its claim, is not known, so nobody can tell where it can be used."""


class Volumes:
    def __init__(self, claims: Iterable[VolumeClaim], volumes: Iterable[PersistentVolume]) -> None:
        self._claims = {(claim.metadata.namespace, claim.metadata.name): claim for claim in claims}
        self._volumes = {volume.metadata.name: volume for volume in volumes}

    def claims_of(self, pod: SchedulingPod) -> Iterator[VolumeClaim | None]:
        """The PersistentVolumeClaims that the pod names; None for one that is not known.

        The claim of an ephemeral volume is not among them: the replacement gets a new one.
        """
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                yield self._claims.get((pod.metadata.namespace, name))

    def affinity_of(self, pod: SchedulingPod) -> tuple[NodeSelector, ...]:
        """What a node must fulfil to use all volumes of the pod.

        Raises:
            UnknownVolume: a claim or its volume was not found.
        """
        return tuple(self._selectors(pod))

    def _selectors(self, pod: SchedulingPod) -> Iterator[NodeSelector]:
        for claim in self.claims_of(pod):
            if claim is None:
                raise UnknownVolume("a PersistentVolumeClaim of the pod was not found")
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                name = claim.metadata.name
                raise UnknownVolume(f"the volume of PersistentVolumeClaim {name} was not found")
            affinity = volume.spec.node_affinity
            if affinity is not None and affinity.required is not None:
                yield affinity.required
