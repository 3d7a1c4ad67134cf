"""The cluster that all schedules share: its servers, its history and its current objects."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from kube_in_process.real.servers.history import History
from kube_in_process.real.servers.plane import ControlPlane
from kube_in_process.storage.store import Revision, decode

from claimctl.wire.base import Object
from claimctl.wire.seams import Transport

Key = tuple[str, str, str]
"""Plural, namespace and name."""


@dataclass
class StoredObjects:
    """Every object as it is stored now, from the history alone, without requests or gaps."""

    number: int = 0
    _now: dict[Key, bytes] = field(default_factory=dict)

    def notice(self, revision: Revision) -> None:
        """Apply one revision."""
        key = (revision.plural, revision.namespace, revision.name)
        self.number = revision.number
        if revision.type == "DELETED":
            self._now.pop(key, None)
        else:
            self._now[key] = revision.data

    def objects(self, plural: str, namespace: str = "") -> list[Object]:
        return [
            decode(data)
            for (kind, space, _), data in self._now.items()
            if kind == plural and space == namespace
        ]

    def find(self, plural: str, namespace: str, name: str) -> Object | None:
        data = self._now.get((plural, namespace, name))
        return None if data is None else decode(data)


@dataclass
class SharedCluster:
    """The shared cluster, as schedules use it."""

    plane: ControlPlane
    transport: Transport
    history: History
    pod_groups: bool = False
    sight: StoredObjects = field(default_factory=StoredObjects)
    accused: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when any schedule has a finding."""

    def now(self) -> float:
        """Seconds of the wall clock, as in the history."""
        return time.time()
