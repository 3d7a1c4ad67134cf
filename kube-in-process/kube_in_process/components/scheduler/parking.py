"""Pods that cannot be scheduled now, and the topics whose changes might help."""

from __future__ import annotations

from collections.abc import Iterable

from kube_in_process.runtime.views import Key

DEVICES = "devices"
NODES = "nodes"
ROOM = "room"
"""A pod left its node."""
VOLUMES = "volumes"
"""A PersistentVolumeClaim, a PersistentVolume or a StorageClass has changed."""
PODS = "pods"
"""A pod came to a node, left it, or has other labels."""


def claim_topic(namespace: str, name: str) -> str:
    return f"claim {namespace}/{name}"


def group_topic(namespace: str, name: str) -> str:
    return f"group {namespace}/{name}"


class Parking:
    """Keys that wait for any of their topics, in the order in which they came."""

    def __init__(self) -> None:
        self._topics: dict[Key, tuple[str, ...]] = {}
        self._waiting: dict[str, dict[Key, None]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._topics

    def park(self, key: Key, topics: Iterable[str]) -> None:
        self.leave(key)
        self._topics[key] = tuple(topics)
        for topic in self._topics[key]:
            self._waiting.setdefault(topic, {})[key] = None

    def leave(self, key: Key) -> None:
        for topic in self._topics.pop(key, ()):
            waiting = self._waiting[topic]
            waiting.pop(key, None)
            if not waiting:
                del self._waiting[topic]

    def wake(self, topic: str) -> list[Key]:
        """Remove and return the keys that wait for this topic."""
        woken = list(self._waiting.get(topic, ()))
        for key in woken:
            self.leave(key)
        return woken
