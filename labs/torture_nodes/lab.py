"""Random users and random kills on two real nodes, judged by the calls that the DRA driver got.

--hold 0 shows what the cluster does alone. Exit code 1 if a device was given away while it was in
use although claimctl ran. A device that the scheduler allocated to two claims at once is shown, and
counts for neither side.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml
from kube_in_process.components.kubelet.nodes import device_class
from kube_in_process.device_witness import judge
from kube_in_process.real.flags import Parser, number
from kube_in_process.real.nodes import enclosure
from kube_in_process.real.nodes.cluster import NodeCluster, running
from kube_in_process.real.nodes.drivers import DriverProcess, slice_of
from kube_in_process.real.nodes.needs import find_tools
from kube_in_process.real.servers.plane import Wanted
from kube_in_process.real.servers.programs import ASSETS, CannotStart

from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl.parallel import wait_for
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story.objects import DEVICE_CLASS
from labs import frame
from labs.torture_nodes.killing import KINDS, Killer, start_replicas
from labs.torture_nodes.report import NodesTally, TortureNodesOptions, report
from labs.torture_nodes.users import NAMESPACE, PlayingUsers
from labs.torture_real.controllers import Controllers

_API = "resource.k8s.io/v1"
_DEVICES = 64
"""On each node. The scheduler takes the first free one, so the same few are used all the time."""
_GUARD = Path(__file__).parents[2] / "deploy/components/pod-deletion/pod-deletion.yaml"
_GUARD_SECONDS = 5.0
_CANNOT_RUN = 2
_SETTLE_SECONDS = 1.0


def parser() -> Parser:
    flags = Parser("labs torture-nodes", __doc__)
    flags.add_servers()
    seconds = number(1, kind=float)
    flags.add_argument("--budget", type=seconds, default=150.0, help="seconds (%(default)g)")
    flags.add_argument("--seed", type=number(), default=0, help="of users and kills (%(default)s)")
    flags.add_argument("--users", type=number(1), default=8, help="at once (%(default)s)")
    flags.add_switch("--hold", "0 for the cluster without claimctl (1)")
    flags.set_defaults(hold=True)
    flags.add_switch("--guard", "1 to install the component pod-deletion (0)")
    flags.add_argument(
        "--kills",
        default=",".join(KINDS),
        help="what is killed, of kubelet, driver and claimctl, or none (%(default)s)",
    )
    return flags


def main(arguments: Sequence[str]) -> int:
    flags = parser()
    options = TortureNodesOptions(**vars(flags.parse_args(arguments)))
    if wrong := options.unknown_kills():
        flags.error(f"--kills: {wrong!r} is none of {', '.join(KINDS)}, none")
    try:
        tools = find_tools(Path(os.environ.get(ASSETS, "")), options.version)
        if not enclosure.inside():
            return enclosure.enclosed("labs", ("torture-nodes", *arguments))
        wanted = Wanted(pod_groups=options.pod_groups, history=True)
        with running(NodeCluster(tools, wanted)) as cluster:
            try:
                tally = asyncio.run(_run(options, cluster))
            finally:
                _keep(options, cluster)
    except CannotStart as error:
        print(f"torture-nodes: skipped: {error}", file=sys.stderr)
        return _CANNOT_RUN
    print("\n".join(report(options, tools.programs.text, tally)))
    if tally.bad or (tally.lost and options.hold):
        return 1
    return frame.INTERRUPTED if tally.interrupted else 0


async def _run(options: TortureNodesOptions, cluster: NodeCluster) -> NodesTally:
    """Play until the budget is used up, or a signal comes; then wait until all claims are free."""
    plane = cluster.plane
    history = plane.history({})
    async with HttpTransport(load_connection(str(plane.files.kubeconfig()))) as transport:
        client = DocumentClient(transport, "users")
        following = asyncio.create_task(history.run(), name="history")
        controllers = await _controllers(cluster, client) if options.hold else None
        driver = await _driver(cluster, client)
        if options.guard:
            await _guard(client)
        users = PlayingUsers(client, options.hold, options.seed)
        killer = Killer(cluster, driver, controllers, options.killed, options.seed)
        tally = NodesTally(actions=users.done, kills=killer.done)
        try:
            tally.interrupted = await _play(options, users, killer)
            tally.held = await users.close()
            await history.caught_up()
            await asyncio.sleep(_SETTLE_SECONDS)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            driver.server.stop()
            if controllers is not None:
                controllers.stop_all()
    tally.claims = users.claims
    tally.faults = judge(driver.calls(), history.revisions)
    tally.bad = controllers.tracebacks() if controllers is not None else []
    return tally


async def _play(options: TortureNodesOptions, users: PlayingUsers, killer: Killer) -> bool:
    """Let users and kills go on for the budget; returns whether a signal has ended it early."""
    tasks = [asyncio.create_task(users.play(number)) for number in range(options.users)]
    kills = asyncio.create_task(killer.play())
    stopped = asyncio.Event()
    for end in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(end, stopped.set)
    await wait_for(stopped, options.budget)
    users.closing.set()
    kills.cancel()
    await asyncio.gather(kills, return_exceptions=True)
    await asyncio.gather(*tasks)
    return stopped.is_set()


async def _controllers(cluster: NodeCluster, client: DocumentClient) -> Controllers:
    """Two replicas of claimctl."""
    controllers = Controllers(cluster.plane.files, cluster.plane.directory)
    await controllers.install(client.transport)
    start_replicas(controllers)
    return controllers


async def _guard(client: DocumentClient) -> None:
    """Install the policy against force deletion, and wait until the API server goes by it."""
    for body in yaml.safe_load_all(_GUARD.read_text(encoding="utf-8")):
        await client.create(body)
    await asyncio.sleep(_GUARD_SECONDS)


async def _driver(cluster: NodeCluster, client: DocumentClient) -> DriverProcess:
    """The driver of all devices, and the namespace of the users."""
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await client.create(device_class(_API, DEVICE_CLASS, DEVICE_CLASS))
    names = [f"dev-{index}" for index in range(_DEVICES)]
    driver = DriverProcess(
        DEVICE_CLASS,
        cluster.plane.files,
        _API,
        {node.name: node.kubelet.root for node in cluster.nodes},
        {node.name: slice_of(node.name, DEVICE_CLASS, names, _API, {}) for node in cluster.nodes},
        enclosure.HOME / "driver",
    )
    driver.start()
    return driver


def _keep(options: TortureNodesOptions, cluster: NodeCluster) -> None:
    if not options.keep:
        return
    folder = Path(options.keep)
    folder.mkdir(parents=True, exist_ok=True)
    for log in (*cluster.logs(), enclosure.HOME / "driver" / "calls"):
        if log.exists():
            shutil.copy(log, folder / f"{log.parent.name}-{log.name}")
