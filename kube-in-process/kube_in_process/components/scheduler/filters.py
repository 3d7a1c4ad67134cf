"""The scheduler's filters: which nodes a pod may use, and the reasons against the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube_in_process.components.fit import reason_against
from kube_in_process.components.objects import labels, name
from kube_in_process.components.requests import clashes
from kube_in_process.components.rooms import Asked, Room
from kube_in_process.components.scheduler.affinity import (
    NO_AFFINITY,
    NO_LABEL,
    REQUIRED,
    Neighbours,
    Spread,
)
from kube_in_process.components.scheduler.parking import PODS, ROOM
from kube_in_process.components.scheduler.rooms import Scene
from kube_in_process.components.scheduler.volumes import PodVolumes
from kube_in_process.kinds.pod_requests import amounts
from kube_in_process.objects import Object
from kube_in_process.runtime.views import Views

NO_PORTS = "node(s) didn't have free ports for the requested pod ports"
TOO_MANY_PODS = "Too many pods"
NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a filter refuses a node.

    ``resolvable``: whether the pod might fit if other pods left. ``topic``: which changes of pods
    might help, or ''.
    """

    reasons: tuple[str, ...]
    resolvable: bool = False
    topic: str = ""


@dataclass(slots=True)
class Filters:
    """The filters for one pod in one scene, in the order of kube-scheduler's default profile."""

    asked: Asked
    scene: Scene
    views: Views
    version: tuple[int, int]
    volumes: PodVolumes | None = None
    _spread: Spread | None = field(init=False, default=None)
    _neighbours: Neighbours | None = field(init=False, default=None)
    _named: frozenset[str] | None = field(init=False, default=None)
    """The only nodes that are looked at, if the pod's affinity names them."""

    def __post_init__(self) -> None:
        pod = self.asked.pod
        self._named = named_nodes(pod)
        if pod["spec"].get("topologySpreadConstraints"):
            self._spread = Spread.of(pod, self.scene)
        if self.asked.rules or self.scene.has_rules():
            spaces: Mapping[str, Mapping[str, str]] = {
                name(namespace): labels(namespace) for namespace in self.views["namespaces"].items()
            }
            self._neighbours = Neighbours(pod, self.scene, spaces)

    def in_scene(self, scene: Scene) -> Filters:
        return Filters(self.asked, scene, self.views, self.version, self.volumes)

    def check(self, node: Object) -> Refusal | None:
        """The refusal of a node; None if the pod fits.

        Pods that are nominated to the node and are at least as important count, too. The pod must
        fit with them, and also without them.
        """
        above = [
            asked
            for asked in self.scene.nominated.get(name(node), ())
            if asked.priority >= self.asked.priority
        ]
        if above:
            refusal = self.in_scene(self.scene.changed(name(node), more=above)).check_alone(node)
            if refusal is not None:
                return refusal
        return self.check_alone(node)

    def check_alone(self, node: Object) -> Refusal | None:
        """As ``check``, without the nominated pods."""
        if self._named is not None and name(node) not in self._named:
            return Refusal((NOT_NAMED,))
        reason = reason_against(self.asked.pod, node, self.version)
        if reason:
            return Refusal((reason,))
        room = self.scene.room(node)
        if any(clashes(mine, used) for mine in self.asked.ports for used in room.ports()):
            return Refusal((NO_PORTS,), resolvable=True, topic=ROOM)
        return self._too_much(node, room) or self._no_volumes(node) or self._wrong_place(node)

    def _too_much(self, node: Object, room: Room) -> Refusal | None:
        status = node.get("status") or {}
        there = amounts(status.get("allocatable") or {})
        reasons, possible = [], True
        if len(room.pods) + 1 > there.get("pods", 0):
            reasons.append(TOO_MANY_PODS)
        for resource in _ordered(self.asked.requests):
            wanted = self.asked.requests[resource]
            if wanted > there.get(resource, 0) - room.used.get(resource, 0):
                reasons.append(f"Insufficient {resource}")
                possible = possible and wanted <= there.get(resource, 0)
        return Refusal(tuple(reasons), possible, ROOM) if reasons else None

    def _no_volumes(self, node: Object) -> Refusal | None:
        if self.volumes is None:
            return None
        reason = self.volumes.reason_against(node, self.views)
        return Refusal((reason,)) if reason else None

    def _wrong_place(self, node: Object) -> Refusal | None:
        reason = self._spread.reason_against(node) if self._spread else ""
        if not reason and self._neighbours is not None:
            reason = self._neighbours.reason_against(node)
        return Refusal((reason,), reason not in (NO_AFFINITY, NO_LABEL), PODS) if reason else None


def named_nodes(pod: Object) -> frozenset[str] | None:
    """The nodes that every term of the required node affinity names; None if one names none."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
    named: set[str] = set()
    for term in terms:
        values = [
            set(field.get("values") or ())
            for field in term.get("matchFields") or ()
            if field["key"] == "metadata.name" and field["operator"] == "In"
        ]
        if not values:
            return None
        named |= set.intersection(*values)
    return frozenset(named) if terms else None


def _ordered(requests: Mapping[str, int]) -> list[str]:
    first = [
        resource for resource in ("cpu", "memory", "ephemeral-storage") if requests.get(resource)
    ]
    return [
        *first,
        *sorted(resource for resource in requests if requests[resource] and resource not in first),
    ]
