"""The kubelet of one node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_in_process.real.nodes.enclosure import CGROUP
from kube_in_process.real.nodes.network import node_address
from kube_in_process.real.servers.process import ServerProcess

_PORT = 10260
_CONFIG = "kubelet.json"
SYNC_FREQUENCY = "10s"
"""How soon it tries again to prepare a device, by default after a minute."""
MONITOR_GRACE_SECONDS = 12
"""Seconds without a sign of life after which kube-controller-manager takes a node for lost."""


@dataclass(slots=True)
class KubeletProcess:
    """A kubelet with its files in ``home``."""

    name: str
    home: Path
    server: ServerProcess

    @property
    def root(self) -> Path:
        """The folder of its pods, and of the sockets of plugins."""
        return self.home / "kubelet"

    def boot_anew(self, number: int) -> None:
        """Give the machine another boot ID; the kubelet reads it when it starts."""
        (self.home / "boot-id").write_text(f"{self.name}-boot-{number}\n")

    def switch(self, gates: Mapping[str, bool]) -> None:
        """Set feature gates; the kubelet reads them when it starts."""
        self.configure(featureGates={**self.settings()["featureGates"], **gates})

    def configure(self, **settings: object) -> None:
        """Change fields of its configuration; the kubelet reads them when it starts."""
        written = json.dumps({**self.settings(), **settings})
        (self.home / _CONFIG).write_text(written)

    def settings(self) -> dict[str, Any]:
        """The fields of its configuration."""
        return dict(json.loads((self.home / _CONFIG).read_text()))


def user(name: str) -> str:
    """The user name of a node's kubelet; its group is ``system:nodes``."""
    return f"system:node:{name}"


def make_kubelet(
    name: str,
    number: int,
    home: Path,
    program: str,
    kubeconfig: Path,
    runtime: str,
    gates: Mapping[str, bool],
) -> KubeletProcess:
    """Write the configuration of a kubelet.

    Args:
        runtime: the socket of containerd.
    """
    config = home / _CONFIG
    config.write_text(json.dumps(_config(number, runtime, gates)))
    (home / "machine-id").write_text(f"{number:032x}\n")
    command = (
        program,
        f"--config={config}",
        f"--kubeconfig={kubeconfig}",
        f"--root-dir={home / 'kubelet'}",
        f"--cert-dir={home / 'certificates'}",
        f"--hostname-override={name}",
        f"--node-ip={node_address(number)}",
        # two nodes of one machine would be one machine that was booted once
        f"--boot-id-file={home / 'boot-id'}",
        f"--machine-id-file={home / 'machine-id'}",
    )
    kubelet = KubeletProcess(name, home, ServerProcess("kubelet", command, home / "kubelet.log"))
    kubelet.boot_anew(0)
    return kubelet


def _config(number: int, runtime: str, gates: Mapping[str, bool]) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{runtime}",
        "address": node_address(number),
        "port": _PORT + number,
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "resolvConf": "",
        "localStorageCapacityIsolation": False,
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "maxPods": 250,
        "registryPullQPS": 0,
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
        "eventRecordQPS": 0,
        "syncFrequency": SYNC_FREQUENCY,
        # a sign of life every two seconds
        "nodeLeaseDurationSeconds": 8,
        "nodeStatusUpdateFrequency": "2s",
        "nodeStatusReportFrequency": "5m",
        "featureGates": dict(gates),
    }
