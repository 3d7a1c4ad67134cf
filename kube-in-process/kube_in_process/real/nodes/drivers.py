"""Start, stop and disturb a DRA driver, and read the calls that it got from the kubelets."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kube_in_process.real.nodes.devices import NodeCall
from kube_in_process.real.servers.files import Files
from kube_in_process.real.servers.process import ServerProcess
from kube_in_process.real.servers.programs import CannotStart

_READY_SECONDS = 30.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Knobs:
    """What the driver does with each call: how long it takes, and the error that it answers.

    ``wants_one_pod``: it refuses a claim unless the claim's list, as the API server has it at that
    moment, has one entry, and that is a pod.
    """

    prepare_seconds: float = 0.0
    unprepare_seconds: float = 0.0
    prepare_error: str = ""
    unprepare_error: str = ""
    wants_one_pod: bool = False


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
    knobs: Knobs = field(default_factory=Knobs, init=False)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True)
        for node in self.roots:
            self._offer(node, self.slices[node])
        settings, calls, knobs = (self.home / each for each in ("settings", "calls", "knobs"))
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
            "knobs": str(knobs),
        }
        settings.write_text(json.dumps(written))
        calls.touch()
        self.turn(self.knobs)
        command = (sys.executable, "-m", "kube_in_process.real.nodes.driver", str(settings))
        self.server = ServerProcess("driver", command, self.home / "driver.log")

    def start(self) -> None:
        """Start it, and wait until its sockets are there.

        Raises:
            CannotStart: it ended, or its sockets do not appear.
        """
        sockets = [
            root / "plugins_registry" / f"{self.name}-reg.sock" for root in self.roots.values()
        ]
        for socket in sockets:
            socket.unlink(missing_ok=True)
        self.server.start()
        end = time.monotonic() + _READY_SECONDS
        while not all(socket.exists() for socket in sockets):
            self.server.check()
            if time.monotonic() > end:
                raise CannotStart(f"the driver does not start: {self.server.last_error()}")
            time.sleep(_LOOK_SECONDS)

    def turn(self, knobs: Knobs) -> None:
        """Change what the driver does from the next call on."""
        self.knobs = knobs
        _write(self.home / "knobs", asdict(knobs))

    @property
    def away(self) -> bool:
        """Whether it has gone, so that no kubelet has it registered.

        Kubelets withdraw its slices after 30 s; when it is back, it publishes them again.
        """
        return not self.server.running

    @away.setter
    def away(self, away: bool) -> None:
        if away:
            self.server.stop()
        elif self.away:
            self.start()

    def publish(self, node: str, devices: Sequence[str | Mapping[str, Any]]) -> None:
        """Offer these devices on a node from now on, as a new generation of its pool.

        A device that is only named keeps the body that it has. The slice follows within a second.
        """
        body = self._offers(node)
        known = {each["name"]: each for each in body["spec"]["devices"]}
        body["spec"]["devices"] = [
            known.get(each, {"name": each}) if isinstance(each, str) else dict(each)
            for each in devices
        ]
        body["spec"]["pool"]["generation"] += 1
        self._offer(node, body)

    def taint(self, node: str, device: str, key: str, effect: str = "NoSchedule") -> None:
        """Add a taint to a device in its slice."""
        devices = self._offers(node)["spec"]["devices"]
        for each in devices:
            if each["name"] == device:
                each["taints"] = [*each.get("taints", ()), {"key": key, "effect": effect}]
        self.publish(node, devices)

    def _offered(self, node: str) -> Path:
        return self.home / f"{node}.slice"

    def _offers(self, node: str) -> dict[str, Any]:
        return dict(json.loads(self._offered(node).read_text()))

    def _offer(self, node: str, body: Mapping[str, Any]) -> None:
        _write(self._offered(node), body)

    def calls(self) -> list[NodeCall]:
        """The calls that have been answered, in the order of their answers."""
        lines = (self.home / "calls").read_text().splitlines()
        return [NodeCall.of(json.loads(line)) for line in lines]


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
            "devices": [{"name": each} for each in devices],
        },
    }
