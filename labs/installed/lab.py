"""claimctl as pods of its own image on two real nodes: installs it in every way, and disturbs it.

The scenarios are played one after the other on one cluster. Exit code 1 if one of them fails.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from kube_in_process.real.flags import Parser
from kube_in_process.real.nodes import enclosure
from kube_in_process.real.nodes.cluster import NodeCluster, running
from kube_in_process.real.nodes.needs import find_tools
from kube_in_process.real.servers.programs import ASSETS, CannotStart

from claimctl import __version__
from labs.installed.site import REFERENCE, UPGRADE, start_driver, use

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "dist" / f"claimctl-{__version__}.oci.tar"
SCENARIOS = Path(__file__).with_name("scenarios.py")
_POD_LOGS = Path("/var/log/pods")
_CANNOT_RUN = 2


def parser() -> Parser:
    flags = Parser("labs installed", __doc__)
    flags.add_servers(gates=False)
    flags.add_argument("--image", type=Path, default=ARCHIVE, help="the archive (%(default)s)")
    flags.add_argument("--only", default="", help="play the scenarios with this in their names")
    return flags


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    try:
        tools = find_tools(Path(os.environ.get(ASSETS, "")), options.version)
        if not options.image.is_file():
            raise CannotStart(f"{options.image} is missing: `make image` writes it")
        if not enclosure.inside():
            return enclosure.enclosed("labs", ("installed", *arguments))
        with running(NodeCluster(tools)) as cluster:
            print(f"Kubernetes {tools.programs.text}, {cluster.count} nodes", flush=True)
            try:
                return play(cluster, options.image, options.only)
            finally:
                keep_logs(cluster, options.keep)
    except CannotStart as error:
        print(f"installed: skipped: {error}", file=sys.stderr)
        return _CANNOT_RUN


def play(cluster: NodeCluster, archive: Path, only: str) -> int:
    """Play the scenarios with the image of an archive; returns pytest's exit code."""
    for node in cluster.nodes:
        node.containerd.import_image(archive)
        node.containerd.name_image(REFERENCE, UPGRADE)
    use(cluster)
    driver = start_driver(cluster)
    try:
        return int(pytest.main(["-q", "-s", "-n0", str(SCENARIOS), "-k", only]))
    finally:
        driver.server.stop()


def keep_logs(cluster: NodeCluster, folder: str) -> None:
    """Copy the logs of all servers and pods; '' for nowhere."""
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for log in cluster.logs():
            shutil.copy(log, Path(folder) / f"{log.parent.name}-{log.name}")
        shutil.copytree(_POD_LOGS, Path(folder) / "pods", dirs_exist_ok=True)
