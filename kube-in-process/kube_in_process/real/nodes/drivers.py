"""Start, stop and disturb a DRA driver, and read the calls that it got from the kubelets."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube_in_process.habits import deciding, registry
from kube_in_process.habits.call import Call
from kube_in_process.habits.habit import Habit, NotPlayed, Stage
from kube_in_process.habits.presence import Away
from kube_in_process.real.servers.files import Files
from kube_in_process.real.servers.process import ServerProcess
from kube_in_process.real.servers.programs import CannotStart

_READY_SECONDS = 30.0
_LOOK_SECONDS = 0.05


@dataclass(slots=True)
class DriverProcess:
    """A driver ``name`` with the same devices on each of some nodes.

    Args:
        roots: by node, the root folder of its kubelet.
        slices: by node, the body of its ResourceSlice.
        home: a folder for its files; it is made.
    """

    name: str
    files: Files
    resource_api: str
    roots: Mapping[str, Path]
    slices: Mapping[str, Mapping[str, Any]]
    home: Path
    server: ServerProcess = field(init=False)
    habits: tuple[Habit, ...] = field(default=(), init=False)
    """What it does that a driver need not do; see ``take_up`` and ``drop``."""

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True)
        for node in self.roots:
            self._offer(node, self.slices[node])
        settings, calls = self.home / "settings", self.home / "calls"
        access = self.files.access
        written = {
            "name": self.name,
            "api": {
                "url": access.url,
                "token": access.token,
                "certificate": access.certificate,
                "resource_api": self.resource_api,
            },
            "nodes": [
                {"name": node, "root": str(root), "slice": str(self._offered(node))}
                for node, root in self.roots.items()
            ],
            "calls": str(calls),
            "habits": str(self.home / "habits"),
            "followed": str(self._followed),
            "checkpoint": str(self.home / "checkpoint"),
        }
        settings.write_text(json.dumps(written))
        calls.touch()
        _write(self.home / "habits", [])
        command = (sys.executable, "-m", "kube_in_process.real.nodes.driver", str(settings))
        self.server = ServerProcess("driver", command, self.home / "driver.log")

    def start(self) -> None:
        """Start it, and wait until its sockets are there.

        Raises:
            CannotStart: it ended, or its sockets do not appear.
        """
        sockets = [self._socket(node) for node in self.roots if self._is_on(node)]
        for socket in sockets:
            socket.unlink(missing_ok=True)
        self.server.start()
        self._wait(lambda: all(socket.exists() for socket in sockets))

    def _wait(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + _READY_SECONDS
        while not holds():
            self.server.check()
            if time.monotonic() > end:
                raise CannotStart(f"the driver does not start: {self.server.last_error()}")
            time.sleep(_LOOK_SECONDS)

    @property
    def _followed(self) -> Path:
        """The habits that the program followed in its last round, in the form of their file."""
        return self.home / "followed"

    def _socket(self, node: str) -> Path:
        return self.roots[node] / "plugins_registry" / f"{self.name}-reg.sock"

    # Habits

    def take_up(self, *habits: Habit | str) -> None:
        """Have these habits from the next call on; one that is only named has its usual values.

        Raises:
            ValueError: no habit has this name.
            NotPlayed: nodes cannot play it.
        """
        for habit in habits:
            new = registry.habit(habit) if isinstance(habit, str) else habit
            if new.needs_nri:
                raise NotPlayed(f"{new.name}: it needs NRI, which these nodes do not have")
            self._change(deciding.taken_up(self.habits, new))

    def drop(self, *names: str, node: str = "") -> None:
        """Have these habits no more, on one node or anywhere; without names, have none."""
        self._change(deciding.dropped(self.habits, names, node))

    def has(self, name: str) -> bool:
        """Whether it has a habit of this name, on any node."""
        return any(habit.name == name for habit in self.habits)

    def _change(self, habits: tuple[Habit, ...]) -> None:
        self.habits = habits
        _write(self.home / "habits", registry.written(habits))
        if self.server.running:
            self._wait(lambda: all(self._socket(x).exists() == self._is_on(x) for x in self.roots))
            wanted = (self.home / "habits").read_text()
            self._wait(lambda: self._followed.exists() and self._followed.read_text() == wanted)

    def _is_on(self, node: str) -> bool:
        return deciding.is_there(deciding.on_node(self.habits, node))

    def leave(self, node: str = "") -> None:
        """Go away from one node, or from all, so that its kubelet has it not registered.

        Kubelets withdraw its slices after 30 s; when it is back, it publishes them again.
        """
        self.take_up(Away(node=node))

    def come_back(self, node: str = "") -> None:
        """Be there again, on one node that it had left, or on all. It has been restarted."""
        self.drop(Away.name, node=node)

    def restart(self) -> None:
        """Be stopped, as by SIGTERM, and started again."""
        self.server.stop()
        self.start()

    @property
    def prepared(self) -> list[tuple[str, str]]:
        """What is prepared now: each claim as namespace/name, with its node."""
        path = self.home / "checkpoint"
        every = json.loads(path.read_text()) if path.exists() else {}
        return [
            (f"{meta['namespace']}/{meta['name']}", node)
            for node, entries in every.items()
            for entry in entries.values()
            if entry["stage"] == Stage.COMPLETED
            for meta in [entry["claim"]["metadata"]]
        ]

    # Devices

    def publish(self, node: str, devices: Sequence[str | Mapping[str, Any]]) -> None:
        """Offer these devices on a node from now on, as a new generation of its pool.

        A device that is only named keeps the body that it has. The slice follows within a second.
        """
        body = self._offers(node)
        known = {device["name"]: device for device in body["spec"]["devices"]}
        body["spec"]["devices"] = [
            known.get(device, {"name": device}) if isinstance(device, str) else dict(device)
            for device in devices
        ]
        body["spec"]["pool"]["generation"] += 1
        self._offer(node, body)

    def _offered(self, node: str) -> Path:
        return self.home / f"{node}.slice"

    def _offers(self, node: str) -> dict[str, Any]:
        return dict(json.loads(self._offered(node).read_text()))

    def _offer(self, node: str, body: Mapping[str, Any]) -> None:
        _write(self._offered(node), body)

    def calls(self) -> list[Call]:
        """The calls that have been answered, in the order of their answers."""
        lines = (self.home / "calls").read_text().splitlines()
        return [Call.of(json.loads(line)) for line in lines]


def _write(path: Path, value: object) -> None:
    """Write a file that another process reads: it has the old content or the new one."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps(value))
    os.replace(fresh, path)


def slice_of(
    node: str, driver: str, devices: Sequence[str], resource_api: str, labels: Mapping[str, str]
) -> dict[str, Any]:
    """The ResourceSlice of a node's devices; the pool has the name of the node."""
    return {
        "apiVersion": resource_api,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}-0", "labels": dict(labels)},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": device} for device in devices],
        },
    }
