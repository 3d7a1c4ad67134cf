"""``make placing``: what keeps the pods of one owner off a node, and what stops a loop?

It plays every cell of ``means.py`` on a real control plane, side by side, then the loops one by
one, and prints the tables of docs/clusters.md. GATES=1 switches MutatingAdmissionPolicies on where
they are off by default (v1beta1 of 1.34 and 1.35).
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from claimctl.kube.connection import load_connection
from claimctl.kube.documents import DocumentClient, NotServed
from claimctl.kube.transport import HttpTransport
from claimctl.wire.seams import Transport
from claimctl_demo.real_servers.kubelet import Kubelets
from claimctl_demo.real_servers.nodes import Fleet
from claimctl_demo.real_servers.plane import ControlPlane, Wanted, running
from claimctl_demo.real_servers.pod_worker import Pace
from claimctl_demo.real_servers.programs import CannotStart
from labs.differential.assets import programs_of
from labs.placing.means import cells
from labs.placing.tries import Try, looped
from tests.support.crds import definitions
from tests.support.variables import BadOption

NODES = 2
"""The number of nodes of each cell."""
POLICY = Path(__file__).parents[2] / "deploy/rescheduler/avoidance/avoidance.yaml"
GATES = (
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
)
LOOPS = (
    ("without claimctl", "one of two nodes", 1, None),
    ("with the taint", "one of two nodes", 1, {"avoid": "Taint"}),
    ("with the admission policy", "one of two nodes", 1, {"avoid": "Admission"}),
    ("without claimctl", "both nodes", 2, None),
    ("with the brake", "both nodes", 2, {"brake": True}),
)


async def install(client: DocumentClient, *, gates: bool) -> bool:
    """The CRDs and the admission policy; whether it is served."""
    for each in definitions():
        await client.create(each)
    for document in yaml.safe_load_all(POLICY.read_text(encoding="utf-8")):
        version = "v1beta1" if gates else "v1"
        document["apiVersion"] = f"admissionregistration.k8s.io/{version}"
        try:
            await client.create(document)
        except NotServed:
            return False
    await asyncio.sleep(2.0)
    return True


async def measure(transport: Transport, fleet: Fleet, *, admission: bool) -> None:
    client = DocumentClient(transport, "people")
    wanted = cells(admission=admission)
    tries = [
        Try(client, cell, fleet.names[NODES * index : NODES * (index + 1)])
        for index, cell in enumerate(wanted)
    ]
    async with asyncio.TaskGroup() as group:
        for each in tries:
            group.create_task(each.play())
    print(table(tries))
    print("\n| who refuses | loop | refused pods in 20 s | runs after |\n| --- | --- | --- | --- |")
    for index, (how, who, bad, args) in enumerate(LOOPS):
        if args is not None and not admission and args != {"avoid": "Taint"}:
            continue
        first = NODES * (len(wanted) + index)
        nodes = fleet.names[first : first + NODES]
        found = await looped(transport, f"loop-{index}", nodes, bad, args)
        ran = f"{found.seconds:.1f} s" if found.seconds is not None else "never"
        print(f"| {who} | {how} | {found.refused} | {ran} |", flush=True)


def table(tries: Sequence[Try]) -> str:
    """The results as a table in Markdown."""
    lines = [
        "| means | the other node has room: owner's pods | others' | "
        "it has no room: owner's pods | others' |",
        "| --- | --- | --- | --- | --- |",
    ]
    by_row: dict[str, list[str]] = {}
    for each in tries:
        row = by_row.setdefault(each.cell.means, [])
        row += [each.shown(each.owner), each.shown(each.others)]
    lines += [f"| {row} | {' | '.join(found)} |" for row, found in by_row.items()]
    return "\n".join(lines)


async def _on_plane(plane: ControlPlane, *, gates: bool) -> None:
    count = NODES * (len(cells(admission=True)) + len(LOOPS))
    fleet = Fleet(plane.programs.version, count=count, devices=1)
    async with HttpTransport(load_connection(str(plane.files.kubeconfig()))) as transport:
        client = DocumentClient(transport, "people")
        admission = await install(client, gates=gates)
        kubelets = Kubelets(transport, fleet, pace=Pace())
        joined = asyncio.Event()
        playing = asyncio.create_task(kubelets.run(joined))
        try:
            await joined.wait()
            await measure(transport, fleet, admission=admission)
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)


def main() -> int:
    try:
        programs = programs_of(os.environ.get("VERSION", ""))
    except (BadOption, CannotStart) as error:
        print(error, file=sys.stderr)
        return 2
    gates = os.environ.get("GATES", "") == "1"
    wanted = Wanted(api_server_flags=GATES if gates else ())
    with (
        tempfile.TemporaryDirectory() as folder,
        running(ControlPlane(programs, Path(folder), wanted)) as plane,
    ):
        print(f"Kubernetes {programs.text}, on the node to avoid / on the other / on none:\n")
        asyncio.run(_on_plane(plane, gates=gates))
    return 0


if __name__ == "__main__":
    sys.exit(main())
