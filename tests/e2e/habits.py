"""The driver of a scenario's own devices: its habits, and what it can be made to do.

One scenario plays everywhere: the actions are the same on an embedded cluster, on real nodes, and
with stand-ins for kubelets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pytest
from kube_in_process.components.drivers.driver import Driver
from kube_in_process.habits.call import Call
from kube_in_process.habits.habit import Habit, NotPlayed
from kube_in_process.real.nodes.drivers import DriverProcess
from kube_in_process.real.servers.driver import StandInDriver


class SiteDriver(Protocol):
    """The driver of the fleet's devices, on all nodes of a scenario."""

    @property
    def name(self) -> str: ...

    @property
    def prepared(self) -> list[tuple[str, str]]:
        """What is prepared now: each claim as namespace/name, with its node."""
        ...

    def has(self, habit: str) -> bool:
        """Whether it has a habit of this name, on any node."""
        ...

    def calls(self) -> list[Call]:
        """The calls that it has answered, oldest first."""
        ...

    async def take_up(self, *habits: Habit | str) -> None:
        """Have these habits from now on; one that is only named has its usual values.

        A scenario is skipped where one of them cannot be played.
        """
        ...

    async def drop(self, *names: str, node: str = "") -> None:
        """Have these habits no more, on one node or anywhere; without names, have none."""
        ...

    async def leave(self, node: str = "") -> None:
        """Go away from one node, or from all."""
        ...

    async def come_back(self, node: str = "") -> None:
        """Be there again, on one node or on all. It has been restarted."""
        ...

    async def restart(self) -> None:
        """Be stopped and started again on all nodes."""
        ...

    async def publish(self, node: str, devices: Sequence[str | dict[str, Any]]) -> None:
        """Offer these devices on a node from now on, as a new generation of its pool."""
        ...


class EmbeddedDriver:
    """The driver of an embedded cluster."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.name = driver.name

    @property
    def prepared(self) -> list[tuple[str, str]]:
        return self._driver.prepared

    def has(self, habit: str) -> bool:
        return self._driver.has(habit)

    def calls(self) -> list[Call]:
        return list(self._driver.calls)

    async def take_up(self, *habits: Habit | str) -> None:
        self._driver.take_up(*habits)

    async def drop(self, *names: str, node: str = "") -> None:
        self._driver.drop(*names, node=node)

    async def leave(self, node: str = "") -> None:
        self._driver.leave(node)

    async def come_back(self, node: str = "") -> None:
        self._driver.come_back(node)

    async def restart(self) -> None:
        self._driver.restart()

    async def publish(self, node: str, devices: Sequence[str | dict[str, Any]]) -> None:
        self._driver.publish(node, devices)


class PlayedDriver:
    """The stand-in for the driver of stand-ins for kubelets."""

    def __init__(self, driver: StandInDriver) -> None:
        self._driver = driver
        self.name = driver.name
        self.has = driver.has
        self.take_up, self.drop = driver.take_up, driver.drop
        self.leave, self.come_back = driver.leave, driver.come_back
        self.restart, self.publish = driver.restart, driver.publish

    @property
    def prepared(self) -> list[tuple[str, str]]:
        return self._driver.prepared

    def calls(self) -> list[Call]:
        return list(self._driver.calls)


class NodeDriver:
    """The driver program of real nodes. Its actions wait until nodes have noticed them."""

    def __init__(self, driver: DriverProcess) -> None:
        self._driver = driver
        self.name = driver.name

    @property
    def prepared(self) -> list[tuple[str, str]]:
        return self._driver.prepared

    def has(self, habit: str) -> bool:
        return self._driver.has(habit)

    def calls(self) -> list[Call]:
        return self._driver.calls()

    async def take_up(self, *habits: Habit | str) -> None:
        await self._played(lambda: self._driver.take_up(*habits))

    async def drop(self, *names: str, node: str = "") -> None:
        await self._played(lambda: self._driver.drop(*names, node=node))

    async def leave(self, node: str = "") -> None:
        await self._played(lambda: self._driver.leave(node))

    async def come_back(self, node: str = "") -> None:
        await self._played(lambda: self._driver.come_back(node))

    async def restart(self) -> None:
        # a process ends with the thread that has started it
        self._driver.restart()

    async def publish(self, node: str, devices: Sequence[str | dict[str, Any]]) -> None:
        self._driver.publish(node, devices)

    async def _played(self, action: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(action)
        except NotPlayed as reason:
            pytest.skip(str(reason))
