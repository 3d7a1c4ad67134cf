"""The real cluster of a test, from the environment that the launcher (``real``) sets."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from kube_in_process.options import Preset
from kube_in_process.real.client import Version
from kube_in_process.real.nodes.cluster import NodeCluster
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import CannotStart, find_programs

from claimctl.controller.dialect import DialectProbe
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import ApiError, NotServed
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story.presets import PRESETS
from tests.e2e.real_cluster import RealCluster
from tests.e2e.refusals import allow_refusals
from tests.e2e.servers import Servers
from tests.support.crds import definitions

ASSETS = "KUBEBUILDER_ASSETS"
CLUSTER = "CLAIMCTL_E2E_CLUSTER"
"""The cluster as JSON. The launcher sets this variable."""
OWNERS = 3
"""Number of processes for scenarios that need a cluster for themselves."""
_RESERVATION: Version = ("claimctl.io/v1alpha1", "ClaimReservation")
_TRIES = 600
_owned: list[RealCluster] = []
_nodes: list[NodeCluster] = []
"""The cluster with real nodes that this process has started, or its parent before the fork."""
_stack = ExitStack()


def shared() -> RealCluster | None:
    """The cluster that all scenarios share; None if they use embedded clusters."""
    told = os.environ.get(CLUSTER)
    if told is None:
        return None
    given = json.loads(told)
    return RealCluster(
        given["kubeconfig"],
        (given["version"][0], given["version"][1]),
        PRESETS[given["dialect"]],
        keeps=given["keeps"],
        plays_hold=given["plays_hold"],
        nodes=_nodes[0] if _nodes else None,
    )


def has_nodes() -> bool:
    """Whether the scenarios are played on real nodes."""
    return bool(_nodes)


def use_nodes(nodes: NodeCluster) -> None:
    """Play the scenarios on a cluster with real nodes from now on."""
    _nodes.append(nodes)


def own() -> RealCluster | None:
    """A cluster for one scenario at a time, started at first use; None without programs."""
    common = shared()
    if common is None or not common.keeps:
        return None
    if common.nodes is not None:
        return replace(common, servers=Servers(common.nodes.plane))
    if not _owned:
        plane, cluster = _stack.enter_context(
            started(Path(os.environ[ASSETS]), pod_groups=common.dialect is Preset.POD_GROUPS)
        )
        _owned.append(replace(common, kubeconfig=cluster.kubeconfig, servers=Servers(plane)))
    return _owned[0]


def close() -> None:
    """Stop the cluster of ``own``. Every process that played scenarios calls this."""
    _owned.clear()
    _stack.close()


@contextmanager
def started(folder: Path, *, pod_groups: bool) -> Iterator[tuple[ControlPlane, RealCluster]]:
    """Start a control plane with the programs in a folder, and install claimctl's CRDs.

    Args:
        pod_groups: whether it has the features that are off by default.

    Raises:
        CannotStart: a program is missing or wrong, or a server does not come up.
    """
    with tempfile.TemporaryDirectory(prefix="claimctl-e2e-") as directory:
        wanted = Wanted(pod_groups=pod_groups, taint_rules=True)
        plane = ControlPlane(find_programs(folder), Path(directory), wanted)
        with running(plane):
            kubeconfig = str(plane.files.kubeconfig())
            yield plane, asyncio.run(furnished(kubeconfig))


async def furnished(kubeconfig: str, *, keeps: bool = True) -> RealCluster:
    """Install claimctl's CRDs, and find out the cluster's version and dialect."""
    async with HttpTransport(load_connection(kubeconfig)) as transport:
        documents = DocumentClient(transport, "e2e")
        await _define(documents)
        await allow_refusals(documents)
        found = await DialectProbe(Client(transport, LoopClock()), namespace="default").detect()
    return RealCluster(kubeconfig, found.version, PRESETS[found.dialect], keeps=keeps)


async def _define(documents: DocumentClient) -> None:
    for definition in definitions():
        try:
            await documents.create(definition)
        except ApiError as refused:
            if refused.reason != "AlreadyExists":
                raise
    for _ in range(_TRIES):
        if await _served(documents):
            return
        await asyncio.sleep(0.1)
    raise CannotStart("the API server does not serve claimctl's definitions after a minute")


async def _served(documents: DocumentClient) -> bool:
    """Whether the API server serves the CRDs."""
    fresh = DocumentClient(documents.transport, documents.name)
    try:
        await fresh.list(_RESERVATION)
    except (NotServed, ApiError):
        return False
    return True
