"""A whole cluster: a control plane and one to three nodes with their container runtimes.

Only for a process inside the ``enclosure``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kube_in_process.real.nodes.containerd import Containerd, make_containerd
from kube_in_process.real.nodes.enclosure import HOME
from kube_in_process.real.nodes.images import write_image
from kube_in_process.real.nodes.kubelet import (
    MONITOR_GRACE_SECONDS,
    KubeletProcess,
    make_kubelet,
    user,
)
from kube_in_process.real.nodes.needs import KUBELET, Tools
from kube_in_process.real.nodes.network import API_SERVICE, lead_to, node_address
from kube_in_process.real.servers.plane import ControlPlane, Wanted
from kube_in_process.real.servers.programs import CannotStart

NODE_PREFIX = "node"
_READY_SECONDS = 90.0
_LOOK_SECONDS = 0.2


@dataclass(slots=True)
class RealNode:
    """A node: its container runtime and its kubelet."""

    name: str
    containerd: Containerd
    kubelet: KubeletProcess
    boots: int = 0
    deaths: list[float] = field(default_factory=list)
    """When it lost power, in seconds since 1970."""

    def is_up(self) -> bool:
        return self.kubelet.server.running

    def kill_kubelet(self) -> None:
        """Kill the kubelet; its containers run on."""
        self.kubelet.server.kill()

    def start_kubelet(self) -> None:
        self.kubelet.server.start()

    def restart_containerd(self) -> None:
        """Kill containerd and start it again; containers run on meanwhile."""
        self.containerd.server.kill()
        self.containerd.server.start()
        self.containerd.wait_until_ready()

    def die(self) -> None:
        """Lose power: kubelet and containers are gone at once."""
        self.kubelet.server.kill()
        self.containerd.kill_all()
        self.deaths.append(time.time())

    def boot(self) -> None:
        """Start a node that has died, under a new boot ID."""
        self.boots += 1
        self.kubelet.boot_anew(self.boots)
        self.kubelet.server.start()


@dataclass(slots=True)
class NodeCluster:
    """A control plane with nodes."""

    tools: Tools
    wanted: Wanted = field(default_factory=Wanted)
    count: int = 2
    nodes: list[RealNode] = field(default_factory=list)
    _plane: ControlPlane | None = None

    @property
    def plane(self) -> ControlPlane:
        if self._plane is None:
            raise RuntimeError("the cluster has not been started")
        return self._plane

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{NODE_PREFIX}-{number}" for number in range(self.count))

    def start(self) -> None:
        """Start everything, and wait until all nodes are ready.

        Raises:
            CannotStart: a part does not start. The message has the end of its log.
        """
        directory = HOME / "plane"
        directory.mkdir()
        self._plane = ControlPlane(self.tools.programs, directory, self._wanted())
        self._plane.start()
        lead_to(self._plane.port)
        image = HOME / "sleeper.tar"
        write_image(image, self.tools.busybox)
        for number, name in enumerate(self.names):
            self.nodes.append(self._node(number, name))
        for node in self.nodes:
            node.containerd.start(image)
            node.kubelet.server.start()
        self.wait_until_ready()

    def _wanted(self) -> Wanted:
        grace = f"--node-monitor-grace-period={MONITOR_GRACE_SECONDS}s"
        return replace(
            self.wanted,
            container_addresses=(node_address(0), API_SERVICE),
            node_lifecycle=True,
            users={**self.wanted.users, **{user(name): "system:nodes" for name in self.names}},
            controller_manager_flags=(*self.wanted.controller_manager_flags, grace),
        )

    def _node(self, number: int, name: str) -> RealNode:
        home = HOME / name
        home.mkdir()
        containerd = make_containerd(number, home, self.tools.plugins)
        kubelet = make_kubelet(
            name,
            number,
            home,
            self.tools.programs.path(KUBELET),
            self.plane.files.kubeconfig(user(name)),
            containerd.address,
            self.plane.features.gates,
        )
        return RealNode(name, containerd, kubelet)

    def wait_until_ready(self) -> None:
        """Wait until every node reports that it is ready, and nothing keeps pods off it.

        Raises:
            CannotStart: a node is not ready in time, or a server has ended.
        """
        end = time.monotonic() + _READY_SECONDS
        while waits := [node for node in self.nodes if not self._is_ready(node.name)]:
            self.check()
            if time.monotonic() > end:
                first = waits[0]
                raise CannotStart(
                    f"{first.name} is not ready after {_READY_SECONDS:g} s; "
                    f"its taints are {self._read(first.name)['spec'].get('taints', [])}; "
                    f"its kubelet said last: {first.kubelet.server.last_error()}"
                )
            time.sleep(_LOOK_SECONDS)

    def _is_ready(self, name: str) -> bool:
        node = self._read(name)
        conditions = {
            condition["type"]: condition["status"] for condition in node["status"]["conditions"]
        }
        return conditions.get("Ready") == "True" and not node["spec"].get("taints")

    def _read(self, name: str) -> Any:
        """The Node; an empty one if the server does not answer."""
        status, answer = self.plane.read(f"/api/v1/nodes/{name}")
        empty: Any = {"spec": {}, "status": {"conditions": []}}
        return json.loads(answer) if status == 200 else empty

    def check(self) -> None:
        """Check that every server runs.

        Raises:
            CannotStart: a server has ended by itself. The message has the end of its log.
        """
        self.plane.check()
        for node in self.nodes:
            node.containerd.server.check()
            node.kubelet.server.check()

    def stop(self) -> None:
        """Stop the servers."""
        for node in self.nodes:
            node.kubelet.server.kill()
            # their containers end with the enclosure
            node.containerd.server.kill()
        if self._plane is not None:
            self._plane.stop()

    def logs(self) -> list[Path]:
        return sorted(HOME.glob("*/*.log"))


@contextmanager
def running(cluster: NodeCluster) -> Iterator[NodeCluster]:
    """Run a cluster during a ``with`` block.

    Raises:
        CannotStart: the cluster does not start. No server is left running.
    """
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
