"""Plays scenarios on real nodes: ``make e2e-nodes``.

``KUBEBUILDER_ASSETS`` names the folder with ``kubelet`` beside the programs of the control plane;
``VERSION`` picks one of several folders in it. With ``CLAIMCTL_E2E_GATES`` PodGroups are switched
on. Arguments are pytest's; ``--core`` plays only the scenarios that guard the promises.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest
from kube_in_process.real.nodes import enclosure
from kube_in_process.real.nodes.cluster import NodeCluster, running
from kube_in_process.real.nodes.needs import Tools, find_tools
from kube_in_process.real.servers.plane import Wanted
from kube_in_process.real.servers.programs import CannotStart

from claimctl_demo.story.presets import DIALECTS
from tests.e2e import playground, selection
from tests.e2e.forked import SideBySide
from tests.e2e.nodes import scenarios
from tests.e2e.playground import ASSETS, CLUSTER, furnished
from tests.e2e.real import CORE, GATES, SETTINGS, WORKERS, as_json

KEEP = "KEEP"
"""A folder for the logs of all servers, and the calls that the drivers got."""
_AT_ONCE = 6
_PAUSE_SECONDS = 0.5
_NOTHING_PLAYED = pytest.ExitCode.NO_TESTS_COLLECTED


def main(arguments: list[str]) -> int:
    try:
        folder = os.environ.get(ASSETS)
        if not folder:
            raise CannotStart(
                f"set {ASSETS} to the folder of etcd, kube-apiserver, kube-controller-manager, "
                "kube-scheduler and kubelet"
            )
        tools = find_tools(Path(folder), os.environ.get("VERSION", ""))
        if not enclosure.inside():
            return enclosure.enclosed("tests.e2e.nodes", arguments)
        return _play(tools, arguments)
    except CannotStart as error:
        print(f"skipped: scenarios on real nodes ({error})", file=sys.stderr)
        return 2


def _play(tools: Tools, arguments: list[str]) -> int:
    core = CORE in arguments
    chosen = [each for each in arguments if each != CORE]
    groups = os.environ.get(GATES, "") not in ("", "0")
    nodes = NodeCluster(tools, Wanted(pod_groups=groups))
    with running(nodes):
        cluster = asyncio.run(furnished(str(nodes.plane.files.kubeconfig())))
        os.environ[CLUSTER] = as_json(cluster)
        playground.use_nodes(nodes)
        dialect = DIALECTS[cluster.dialect]
        print(
            f"Kubernetes {tools.programs.text}, {nodes.count} nodes, dialect {dialect}", flush=True
        )
        if not any(".py" in each for each in chosen):
            chosen += scenarios.files(core)
        try:
            return max(_beside(chosen, core), _alone(chosen, core))
        finally:
            _keep_logs(nodes)


def _beside(chosen: list[str], core: bool) -> int:
    """Play most scenarios in parallel."""
    workers = int(os.environ.get(WORKERS, _AT_ONCE))
    beside = SideBySide(
        workers, lambda item: False, 0, playground.close, selection.rank, _PAUSE_SECONDS
    )
    return _code(pytest.main([*_settings("not alone", core), *chosen], plugins=[beside]))


def _alone(chosen: list[str], core: bool) -> int:
    """Play those that disturb nodes or servers, one after the other, in this process."""
    return _code(pytest.main([*_settings("alone", core), *chosen]))


def _settings(mark: str, core: bool) -> list[str]:
    return ["-q", *SETTINGS, "-m", f"core and {mark}" if core else mark]


def _code(code: int | pytest.ExitCode) -> int:
    return 0 if code == _NOTHING_PLAYED else int(code)


def _keep_logs(nodes: NodeCluster) -> None:
    if not (folder := os.environ.get(KEEP)):
        return
    for log in (*nodes.logs(), *enclosure.HOME.glob("drivers/*/calls")):
        target = Path(folder) / f"{log.parent.name}-{log.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, target)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
