"""What a team notices while another team of the cluster does harm.

Two controllers run as installed, one of them leads. In the namespace ``victim`` Deployments with a
claim come and go, alone at first and then beside a harm. Each harm has servers of its own. Without
``KUBEBUILDER_ASSETS`` an embedded cluster is the server. At the end the leader is killed and a
controller starts beside what is there.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import yaml
from kube_in_process.real.servers.files import ADMIN_USER, Files
from kube_in_process.real.servers.following import Follower
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.process import ServerProcess
from kube_in_process.real.servers.programs import find_programs

from bench.harms import ENDLESS, HARMS, LEAVES_NOTHING, REAL_ONLY, RESERVATION, SPACE, Tenant
from bench.jobs import claim, deployment, made
from bench.table import ASSETS, BenchPart, Line, at_most, register, tell
from claimctl.kube.errors import KubeError
from claimctl.kube.transport import HttpTransport
from claimctl.login.connect import load_connection
from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient
from labs.torture_real.controllers import Controllers

POD, DEPLOYMENT = ("v1", "Pod"), ("apps/v1", "Deployment")
VICTIM = "victim"
LONGEST = 60.0
"""A hold or a release that takes longer counts as this, in seconds."""
LOOK = 0.02
LEADS = "leading"
"""What a controller logs when it begins to lead."""
LEAVES = "leads no more"
ALONE_SECONDS, AFTERWARDS_SECONDS = 10.0, 10.0


@dataclass
class WatchedVictim:
    """The victim's claims and pods, and when each claim became held and free."""

    claims: dict[str, Object] = field(default_factory=dict)
    pods: dict[str, Object] = field(default_factory=dict)

    def claim(self, change: str, body: Object) -> None:
        self._note(self.claims, change, body)

    def pod(self, change: str, body: Object) -> None:
        self._note(self.pods, change, body)

    def _note(self, known: dict[str, Object], change: str, body: Object) -> None:
        name = body["metadata"]["name"]
        known.pop(name, None) if change == "DELETED" else known.update({name: body})

    def held(self, name: str) -> bool:
        listed = self.claims.get(name, {}).get("status", {}).get("reservedFor") or ()
        return any(entry["resource"] == "deployments" for entry in listed)

    def free(self, name: str) -> bool:
        return not self.claims.get(name, {}).get("status", {}).get("allocation")

    def ended(self, name: str) -> bool:
        return not any(pod.startswith(f"{name}-") for pod in self.pods)


@dataclass
class Victim:
    """Deployments with a claim that come and go, and how long each step took, in seconds."""

    client: DocumentClient
    fleet: Fleet
    watched: WatchedVictim = field(default_factory=WatchedVictim)
    holds: list[float] = field(default_factory=list)
    releases: list[float] = field(default_factory=list)
    _lives: int = 0

    async def live(self) -> None:
        """One Deployment: from its creation until it is held, from its end until free."""
        self._lives += 1
        name, seen = f"train{self._lives}", self.watched
        await self.client.create(claim(self.fleet, VICTIM, name))
        await self.client.create(deployment(VICTIM, name, 1))
        self.holds.append(await _seconds_until(lambda: seen.held(name)))
        await self.client.delete(DEPLOYMENT, VICTIM, name)
        await _seconds_until(lambda: seen.ended(name))
        self.releases.append(await _seconds_until(lambda: seen.free(name)))
        await self.client.delete(self.fleet.claims, VICTIM, name)

    async def live_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await self.live()
            await asyncio.sleep(0.5)

    def taken(self) -> tuple[list[float], list[float]]:
        """The times since the last call."""
        times = self.holds, self.releases
        self.holds, self.releases = [], []
        return times


async def _seconds_until(holds: Callable[[], bool]) -> float:
    began = time.monotonic()
    while True:
        seconds = time.monotonic() - began
        if holds() or seconds > LONGEST:
            return seconds
        await asyncio.sleep(LOOK)


@dataclass
class Pair:
    """Two controllers, which are started again when they end, as a kubelet would do."""

    controllers: Controllers
    ended: int = 0
    most: float = 0.0
    """The most resident memory that was seen, in MB."""

    def start(self, *names: str) -> None:
        for name in names:
            self.controllers.start(name)

    def kill(self) -> None:
        for name in list(self.controllers.running):
            self.controllers.kill(name)

    async def start_again(self) -> float:
        """Kill both, start one, and return the seconds until it leads."""
        self.kill()
        led, self.most = self.count(LEADS), 0.0
        self.start("again")
        return await self.leads(led + 1)

    async def watch(self) -> None:
        """Note the memory and the ends of the processes until cancelled."""
        while True:
            for name, server in list(self.controllers.running.items()):
                if server.running:
                    self.most = max(self.most, _resident(server))
                else:
                    self.ended += 1
                    self.controllers.start(name)
            await asyncio.sleep(0.5)

    async def leads(self, times: int = 1) -> float:
        """Seconds until a controller leads."""
        return await _seconds_until(lambda: self.count(LEADS) >= times)

    def count(self, text: str) -> int:
        """How often the text stands in the logs as an event."""
        return sum(log.read_text().count(f'"message": "{text}"') for log in self._logs())

    def lines(self, about: str) -> int:
        """The lines of the logs that name a namespace."""
        return sum(about in line for log in self._logs() for line in log.read_text().splitlines())

    def _logs(self) -> Iterator[Path]:
        return self.controllers.logs.glob("claimctl-*.log")

    async def series(self, about: str) -> int:
        """The metric series of all processes that name a namespace or a kind."""
        return sum([about in line for port in self._ports() for line in await _metrics(port)])

    def _ports(self) -> Iterator[str]:
        for server in self.controllers.running.values():
            flag = next(flag for flag in server.command if flag.startswith("--bind-address="))
            yield flag.rpartition(":")[2]


def _resident(server: ServerProcess) -> float:
    """The resident memory of a process in MB; 0 if it has just ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{server.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


async def _metrics(port: str) -> Sequence[str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
    text = await reader.read()
    writer.close()
    return text.decode().splitlines()


@dataclass(frozen=True)
class HarmCluster:
    """The servers of one harm. An embedded cluster has no tokens, and plays its own kubelets."""

    name: str
    files: Files
    fleet: Fleet


@dataclass
class TenantsPlace:
    """A cluster with two controllers, a victim and a tenant."""

    name: str
    pair: Pair
    victim: Victim
    tenant: Tenant


@asynccontextmanager
async def _playing(cluster: HarmCluster) -> AsyncIterator[TenantsPlace]:
    files, fleet = cluster.files, cluster.fleet
    kubeconfig = files.directory / "bench.kubeconfig"
    files.write_kubeconfig(kubeconfig, files.tokens.get(ADMIN_USER, ""))
    async with HttpTransport(load_connection(str(kubeconfig))) as transport:
        client = DocumentClient(transport, "bench")
        pair = Pair(Controllers(files, files.directory))
        place = TenantsPlace(cluster.name, pair, Victim(client, fleet), Tenant(transport, fleet))
        await pair.controllers.install(transport)
        for space in (VICTIM, SPACE):
            await client.create(made("v1", "Namespace", space))
        seen = place.victim.watched
        followers = [
            Follower(transport, POD, seen.pod, VICTIM),
            Follower(transport, fleet.claims, seen.claim, VICTIM),
        ]
        tasks = [asyncio.create_task(follower.run()) for follower in followers]
        if files.tokens:
            tasks.append(asyncio.create_task(Kubelets(transport, fleet, namespace=VICTIM).run()))
        pair.start("one", "two")
        try:
            await pair.leads()
            tasks.append(asyncio.create_task(pair.watch()))
            yield place
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            pair.kill()


@contextmanager
def _servers(folder: Path) -> Iterator[HarmCluster]:
    """Real servers if there are programs of them, or else an embedded cluster."""
    if assets := os.environ.get(ASSETS):
        wanted = Wanted(etcd_flags=("--quota-backend-bytes=8000000000",))
        with running(ControlPlane(find_programs(Path(assets)), folder, wanted)) as plane:
            fleet = Fleet(plane.programs.version, devices=32)
            yield HarmCluster(".".join(map(str, fleet.version)), plane.files, fleet)
        return
    kubeconfig, program = folder / "embedded.kubeconfig", Path(sys.executable).with_name("claimctl")
    flags = ("demo", "cluster", f"--kubeconfig={kubeconfig}", "--devices=32")
    server = ServerProcess("cluster", (str(program), *flags), folder / "cluster.log")
    server.start()
    try:
        yield HarmCluster("embedded", _access(kubeconfig, server), Fleet((1, 36), devices=32))
    finally:
        server.stop()


def _access(kubeconfig: Path, server: ServerProcess) -> Files:
    """The access to the embedded cluster, as soon as it serves."""
    while not kubeconfig.exists():
        server.check()
        time.sleep(LOOK)
    cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    return Files(kubeconfig.parent, cluster["server"], "", {})


async def _measured(cluster: HarmCluster, harm: str, times: int, seconds: float) -> list[Line]:
    """The lines of one harm."""
    async with _playing(cluster) as place:
        pair, victim = place.pair, place.victim
        await victim.live_for(ALONE_SECONDS)
        alone = victim.taken()
        task = asyncio.create_task(HARMS[harm](place.tenant, times))
        await victim.live_for(seconds)
        while harm not in ENDLESS and not task.done():
            await victim.live()
        await victim.live_for(AFTERWARDS_SECONDS)
        if not place.tenant.accepted:
            raise RuntimeError(f"{harm}: the server took nothing, so nothing was measured")
        beside = victim.taken()
        resident, ended, lost = pair.most, pair.ended, pair.count(LEAVES)
        seconds_to_lead = await pair.start_again()
        await victim.live()
        _, (release,) = victim.taken()
        await _stop(task)
        tell(f"{harm} x {times}: {place.tenant.accepted} objects, {pair.lines(SPACE)} lines of log")
        name = f"tenants {place.name}: {harm} x {times}, %s"
        return [
            *_times(name, "created to held", beside[0], alone[0]),
            *_times(name, "ended to free", beside[1], alone[1]),
            Line(name % "resident memory", resident, unit="MB", goal=at_most(200)),
            Line(name % "processes ended", ended, goal=at_most(0)),
            Line(name % "Leases lost", lost, goal=at_most(0)),
            Line(name % "a start until it leads", seconds_to_lead, unit="s", goal=at_most(30)),
            Line(name % "resident memory of a start", pair.most, unit="MB", goal=at_most(350)),
            Line(name % "ended to free after a start", release, unit="s", goal=at_most(10)),
            *(await _afterwards(place, name) if harm in LEAVES_NOTHING else ()),
        ]


def _times(name: str, what: str, beside: list[float], alone: list[float]) -> Iterator[Line]:
    """The victim's longest time, and its usual time alone."""
    longest, usual = max(beside), median(alone)
    yield Line(name % f"{what}, longest", longest, unit="s", goal=at_most(2), runs=len(beside))
    yield Line(name % f"{what}, median alone", usual, unit="s", runs=len(alone))


async def _afterwards(place: TenantsPlace, name: str) -> list[Line]:
    """What is said of a tenant a minute after all its objects are gone."""
    await place.tenant.delete_all(POD, RESERVATION)
    await asyncio.sleep(60.0)
    before = place.pair.lines(SPACE)
    await asyncio.sleep(20.0)
    lines, series = place.pair.lines(SPACE) - before, await place.pair.series("example.com")
    return [
        Line(name % "lines in 20 s when all is gone", lines, goal=at_most(0)),
        Line(name % "series when all is gone", series, goal=at_most(0)),
    ]


async def _stop(task: asyncio.Task[None]) -> None:
    """End a harm, and raise what ended it before."""
    task.cancel()
    with suppress(asyncio.CancelledError, KubeError):
        await task


def _part(options: argparse.Namespace) -> Iterator[Line]:
    real = bool(os.environ.get(ASSETS))
    for harm in options.harms:
        if harm in REAL_ONLY and not real:
            tell(f"{harm}: not measured: {ASSETS} is not set")
            continue
        for times in options.times:
            with _folder(options.keep) as folder, _servers(folder) as cluster:
                lines = asyncio.run(_measured(cluster, harm, times, options.seconds))
            for line in lines:
                tell(f"{line.name}: {line.figure:.2f} {line.unit} {line.verdict}")
            yield from lines


@contextmanager
def _folder(kept: str) -> Iterator[Path]:
    """A new folder for the files and logs of one cluster, in ``kept`` if they are to stay."""
    if kept:
        yield Path(tempfile.mkdtemp(dir=kept))
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--harms", nargs="+", choices=HARMS, default=list(HARMS), metavar="HARM")
    parser.add_argument("--times", type=int, nargs="+", default=[1, 4], help="factors of the size")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long a harm lasts")
    parser.add_argument("--keep", default="", help="a folder for the logs")


register(BenchPart("tenants", "what a team notices of another team's harm", _part, _flags))
