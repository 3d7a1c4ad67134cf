"""The scheduler's account of each node: its pods, and what they request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kube_in_process.components.objects import key_of, name, namespace, uid
from kube_in_process.components.pods import ended, node_name
from kube_in_process.components.rooms import Asked, Room
from kube_in_process.objects import Object
from kube_in_process.runtime.views import Change, View

EMPTY = Room()


@dataclass(frozen=True, slots=True)
class Scene:
    """All nodes at one moment, with their rooms and the pods that are nominated to them."""

    nodes: tuple[Object, ...]
    rooms: Mapping[str, Room]
    nominated: Mapping[str, tuple[Asked, ...]] = field(default_factory=dict)
    """By node: the pods that got it by preemption and are not bound yet."""

    def room(self, node: Object | str) -> Room:
        return self.rooms.get(node if isinstance(node, str) else name(node), EMPTY)

    def has_rules(self) -> bool:
        """Whether a pod has rules about other pods."""
        return any(room.ruled for room in self.rooms.values())

    def placed(self) -> Iterator[tuple[Object, Object]]:
        """Every pod with its node."""
        for node in self.nodes:
            for pod in self.room(node).pods.values():
                yield pod.pod, node

    def changed(self, node: str, without: Iterable[str] = (), more: Iterable[Asked] = ()) -> Scene:
        """The scene in which pods (UIDs) left a node and others came."""
        room = self.room(node).copy()
        for pod_uid in without:
            room.take(pod_uid)
        for asked in more:
            room.put(asked)
        return Scene(self.nodes, {**self.rooms, node: room}, self.nominated)


class Rooms:
    """Follows the pods. A pod that has ended takes no room."""

    def __init__(self, pods: View) -> None:
        self._pods = pods
        self._rooms: dict[str, Room] = {}
        self._nodes: dict[str, str] = {}
        self._waiting: dict[str, Asked] = {}
        pods.subscribe(self._changed)
        for pod in pods.items():
            self._changed(Change(key_of(pod), None, pod))

    def scene(self, nodes: Iterable[Object], apart: Object) -> Scene:
        """The scene for planning the pod ``apart``, which does not count as nominated."""
        nominated: dict[str, tuple[Asked, ...]] = {}
        for pod_uid, asked in self._waiting.items():
            if pod_uid != uid(apart) and pod_uid not in self._nodes:
                node = asked.pod["status"]["nominatedNodeName"]
                nominated[node] = (*nominated.get(node, ()), asked)
        return Scene(tuple(nodes), self._rooms, nominated)

    def assume(self, pod: Object, node: str) -> None:
        """Count a pod on a node before the API server shows it there."""
        self._place(Asked.of(pod), node)

    def forget(self, pod: Object) -> None:
        """Take back an assumption. A pod that is bound stays."""
        current = self._pods.get(namespace(pod), name(pod))
        bound = current is not None and uid(current) == uid(pod) and node_name(current)
        if not bound:
            self._remove(uid(pod))

    def reset(self) -> None:
        """Count only what the API server shows."""
        self._rooms.clear()
        self._nodes.clear()
        self._waiting.clear()
        for pod in self._pods.items():
            self._changed(Change(key_of(pod), None, pod))

    def _changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or uid(new) != uid(old)):
            self._remove(uid(old))
            self._waiting.pop(uid(old), None)
        if new is None:
            return
        self._waiting.pop(uid(new), None)
        if ended(new):
            self._remove(uid(new))
        elif node_name(new):
            self._place(Asked.of(new), node_name(new))
        elif (new.get("status") or {}).get("nominatedNodeName"):
            self._waiting[uid(new)] = Asked.of(new)

    def _place(self, asked: Asked, node: str) -> None:
        self._remove(uid(asked.pod))
        self._nodes[uid(asked.pod)] = node
        self._rooms.setdefault(node, Room()).put(asked)

    def _remove(self, pod: str) -> None:
        node = self._nodes.pop(pod, None)
        if node is not None:
            self._rooms[node].take(pod)
