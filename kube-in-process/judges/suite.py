"""Runs the tests that a client of Kubernetes has for itself on kube-in-process and on real servers.

The tests are in a folder that the user has; nothing is downloaded. They find the cluster by
``KUBECONFIG`` and by ``~/.kube/config``, in a home of their own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kube_in_process.manifests import read_objects
from kube_in_process.options import ClusterOptions
from kube_in_process.real.client import DocumentClient
from kube_in_process.real.flags import Parser
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import CannotStart, Programs
from kube_in_process.real.transport import HttpTransport
from kube_in_process.serving.kubeconfig import Access, read_kubeconfig, write_kubeconfig
from kube_in_process.testing import served

NODES = 3
Outcomes = Mapping[str, str]
"""By the name of a test: passed, failed or skipped."""


@dataclass(frozen=True, slots=True)
class ClientSuite:
    """``manifests`` are files that are applied before the tests begin."""

    folder: Path
    python: str
    manifests: tuple[Path, ...] = ()
    arguments: tuple[str, ...] = ()

    async def outcomes(self, access: Access) -> Outcomes:
        """Run the tests on a cluster."""
        async with HttpTransport(access) as transport:
            client = DocumentClient(transport, "suite")
            for file in self.manifests:
                for body in read_objects(file):
                    await client.apply(body, "suite")
        with tempfile.TemporaryDirectory(prefix="suite-") as name:
            home, report = Path(name), Path(name, "report.xml")
            config = home / ".kube" / "config"
            config.parent.mkdir()
            write_kubeconfig(config, access)
            flags = ("-q", "-o", "addopts=", "-p", "no:cacheprovider", f"--junitxml={report}")
            tests = await asyncio.create_subprocess_exec(
                *(self.python, "-m", "pytest", *flags, *self.arguments),
                cwd=self.folder,
                env={**os.environ, "HOME": name, "KUBECONFIG": str(config)},
            )
            try:
                await tests.wait()
            finally:
                if tests.returncode is None:
                    tests.kill()
            return await asyncio.to_thread(outcomes_of, report)


def outcomes_of(report: Path) -> Outcomes:
    """The outcomes in a report of pytest; none if there is no report."""
    outcomes: dict[str, str] = {}
    if not report.exists():
        return outcomes
    for case in ET.parse(report).iter("testcase"):
        kinds = {part.tag for part in case}
        outcome = "failed" if kinds & {"failure", "error"} else "passed"
        name = f"{case.get('classname')}::{case.get('name')}"
        outcomes[name] = "skipped" if "skipped" in kinds else outcome
    return outcomes


def lost(here: Outcomes, there: Outcomes) -> list[str]:
    """The tests that pass on real servers and not on kube-in-process."""
    return [name for name, outcome in there.items() if outcome == "passed" != here.get(name)]


async def on_kube_in_process(suite: ClientSuite, version: tuple[int, int]) -> Outcomes:
    options = ClusterOptions(nodes=NODES, kubernetes_version=version)
    with tempfile.TemporaryDirectory() as name, served(Path(name), options) as cluster:
        return await suite.outcomes(read_kubeconfig(cluster.kubeconfig))


async def on_real_servers(suite: ClientSuite, programs: Programs) -> Outcomes:
    """Run the tests beside etcd, the API server, the controllers and a stand-in for kubelets."""
    with (
        tempfile.TemporaryDirectory(prefix="suite-") as name,
        running(ControlPlane(programs, Path(name), Wanted(node_lifecycle=True))) as plane,
    ):
        async with HttpTransport(plane.files.access) as transport:
            joined = asyncio.Event()
            kubelets = Kubelets(transport, Fleet(programs.version, count=NODES))
            playing = asyncio.create_task(kubelets.run(joined))
            await joined.wait()
            try:
                return await suite.outcomes(plane.files.access)
            finally:
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)


def main(arguments: Sequence[str]) -> int:
    """Run them; 1 if a test fails here that passes on real servers, or at all without those."""
    parser = Parser("judges suite", __doc__)
    parser.add_argument("folder", type=Path, help="where the tests are run")
    parser.add_version()
    parser.add_argument("--python", default=sys.executable, help="the Python that has the client")
    parser.add_argument("--apply", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("tests", nargs="*", help="arguments for pytest, after --")
    wanted = parser.parse_intermixed_args(arguments)
    suite = ClientSuite(wanted.folder, wanted.python, tuple(wanted.apply), tuple(wanted.tests))
    try:
        programs = parser.programs(wanted.version) if wanted.version else None
        version = programs.version if programs else (1, 36)
        here = asyncio.run(on_kube_in_process(suite, version))
        there = asyncio.run(on_real_servers(suite, programs)) if programs else {}
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    _say("kube-in-process", here)
    if not programs:
        return int("failed" in here.values() or not here)
    _say("real servers", there)
    missing = lost(here, there)
    print(f"{len(missing)} pass on real servers only:", *missing, sep="\n  ")
    return int(bool(missing) or not there)


def _say(where: str, outcomes: Outcomes) -> None:
    counts = {kind: list(outcomes.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    print(where, *(f"{count} {kind}" for kind, count in counts.items()), sep="  ")
