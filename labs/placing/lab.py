"""Measures what keeps the pods of one owner off a node, and what stops a loop.

Plays every cell of ``means.py`` on a real control plane, side by side, then the loops one by
one, and prints the tables of docs/clusters-measured.md. ``--gates 1`` switches
MutatingAdmissionPolicies on where they are off by default (v1beta1 of 1.34 and 1.35).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from kube_in_process.real.flags import Parser, Servers
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.plane import ControlPlane, Wanted

from claimctl.kube.errors import NotServed
from claimctl.kube.transport import HttpTransport
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from labs import frame
from labs.placing.loops import looped
from labs.placing.means import cells
from labs.placing.placement import PlacementTry
from tests.support.crds import definitions

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Servers):
    gates: bool


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs placing", __doc__)
    parser.add_servers(gates=False)
    parser.add_switch("--gates", "1 for the admission policies of 1.34 and 1.35")
    options = parser.read(arguments, Options)

    async def play(plane: ControlPlane, transport: HttpTransport) -> int:
        print(f"{options.label}, on the node to avoid / on the other / on none:\n")
        admission = await install(DocumentClient(transport, "people"), gates=options.gates)
        count = NODES * (len(cells(admission=True)) + len(LOOPS))
        fleet = Fleet(plane.programs.version, count=count, devices=1)
        async with frame.nodes(Kubelets(transport, fleet)):
            await measure(transport, fleet, admission=admission)
        return 0

    return frame.on_servers(options, Wanted(api_server_flags=GATES if options.gates else ()), play)


async def install(client: DocumentClient, *, gates: bool) -> bool:
    """The CRDs and the admission policy; whether it is served."""
    for definition in definitions():
        await client.create(definition)
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
        PlacementTry(client, cell, fleet.names[NODES * index : NODES * (index + 1)])
        for index, cell in enumerate(wanted)
    ]
    await frame.together((attempt.play() for attempt in tries), len(tries))
    print(shown(tries))
    rows = []
    for index, (how, who, bad, args) in enumerate(LOOPS):
        if args is not None and not admission and args != {"avoid": "Taint"}:
            continue
        first = NODES * (len(wanted) + index)
        nodes = fleet.names[first : first + NODES]
        loop = await looped(transport, f"loop-{index}", nodes, bad, args)
        ran = f"{loop.seconds:.1f} s" if loop.seconds is not None else "never"
        rows.append((who, how, loop.refused, ran))
    header = ("who refuses", "loop", "refused pods in 20 s", "runs after")
    print(f"\n{frame.table(header, rows)}")


def shown(tries: Sequence[PlacementTry]) -> str:
    """The results as a table in Markdown."""
    cells_of_rows = (
        (attempt.cell.means, [attempt.shown(attempt.owner), attempt.shown(attempt.others)])
        for attempt in tries
    )
    owners = ("the other node has room: owner's pods", "it has no room: owner's pods")
    header = ("means", owners[0], "others'", owners[1], "others'")
    return frame.table(header, frame.side_by_side(cells_of_rows))
