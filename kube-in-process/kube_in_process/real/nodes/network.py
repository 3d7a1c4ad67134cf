"""The network of a cluster with nodes, inside its own network namespace.

Each node has an address on one bridge. Pods have addresses of their node (CNI) and reach the API
server under the address of the Service ``kubernetes``, as in every cluster. Nothing leaves the
namespace.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from kube_in_process.real.servers.programs import CannotStart

BRIDGE = "node0"
NODES_AT_MOST = 3
API_SERVICE = "10.0.0.1"
"""The first address of the API server's ``--service-cluster-ip-range``."""


def node_address(number: int) -> str:
    """The address of a node; the first one is also that of the API server."""
    return f"10.77.0.{number + 1}"


def pod_subnet(number: int) -> str:
    return f"10.77.{number + 1}.0/24"


def make_network() -> None:
    """Make the bridge and the addresses.

    Raises:
        CannotStart: the kernel refuses something.
    """
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    for number in range(NODES_AT_MOST):
        _run("ip", "address", "add", f"{node_address(number)}/24", "dev", BRIDGE)
    _run("ip", "link", "set", BRIDGE, "up")
    _run("ip", "route", "add", "default", "dev", BRIDGE)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def lead_to(port: int) -> None:
    """Lead connections to the Service ``kubernetes`` to the API server's port.

    Raises:
        CannotStart: the kernel refuses a rule.
    """
    chains = "".join(
        f"chain {hook} {{ type nat hook {hook} priority -100; "
        f"ip daddr {API_SERVICE} tcp dport 443 dnat to {node_address(0)}:{port}; }}\n"
        for hook in ("prerouting", "output")
    )
    _run("nft", f"table ip claimctl {{\n{chains}}}")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotStart(f"{' '.join(command[:3])}: {done.stderr.strip().splitlines()[0]}")
