"""The cluster that all schedules share: its servers, its history, and what is there now."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from claimctl.controlplane.history import History
from claimctl.controlplane.plane import ControlPlane
from claimctl.embedded.storage.store import Object, Revision, decode
from claimctl.wire.seams import Transport

Key = tuple[str, str, str]
"""Plural, namespace and name."""


@dataclass
class ScannedClaim:
    """Every object as it is stored now, by the history alone: no request, no gap."""

    number: int = 0
    _now: dict[Key, bytes] = field(default_factory=dict)

    def notice(self, revision: Revision) -> None:
        """Take in one revision."""
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
class Stage:
    """What every schedule has at hand."""

    plane: ControlPlane
    transport: Transport
    history: History
    pod_groups: bool = False
    sight: ScannedClaim = field(default_factory=ScannedClaim)
    found: asyncio.Event = field(default_factory=asyncio.Event)
    """Something was found in some schedule."""

    def now(self) -> float:
        """Seconds of the wall clock, as the history has them."""
        return time.time()
