"""Measures where a pod with claims goes that is evicted.

Plays every cell of ``cells.py`` on a real control plane, side by side, and prints the table of
docs/clusters-measured.md: by cell, how many replacements ran on the same node, on another one, or
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kube_in_process.real.flags import Parser, Servers, number
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.plane import ControlPlane, Wanted
from kube_in_process.real.servers.pod_worker import Pace

from claimctl.kube.transport import HttpTransport
from claimctl_demo.documents import DocumentClient
from labs import frame
from labs.moving.cells import Closing, cells
from labs.moving.eviction import EvictionTry

NODES = 3
"""The number of nodes of each cell."""
DEVICES = 4
STOP_SECONDS = 1.0
"""How long containers take to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Servers):
    evictions: int


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs moving", __doc__)
    parser.add_servers(gates=False)
    parser.add_argument("--evictions", type=number(1), default=4, help="in each cell (%(default)s)")
    options = parser.read(arguments, Options)

    async def play(plane: ControlPlane, transport: HttpTransport) -> int:
        wanted = cells()
        fleet = Fleet(plane.programs.version, count=NODES * len(wanted), devices=DEVICES)
        client = DocumentClient(transport, "people")
        tries = [
            EvictionTry(
                client,
                cell,
                fleet.names[NODES * index : NODES * (index + 1)],
                fleet.claims,
                fleet.device_class,
            )
            for index, cell in enumerate(wanted)
        ]
        async with frame.nodes(Kubelets(transport, fleet, pace=Pace(stop=STOP_SECONDS))):
            await frame.together((attempt.play(options.evictions) for attempt in tries), len(tries))
        print(f"{options.label}, same node / moved / not running:\n")
        print(shown(tries))
        return 0

    return frame.on_servers(options, Wanted(), play)


def shown(tries: Sequence[EvictionTry]) -> str:
    """The results as a table in Markdown."""
    cells_of_rows = ((attempt.cell.row, [attempt.replacements.shown]) for attempt in tries)
    header = ("workload", *(f"node {closing}" for closing in Closing))
    return frame.table(header, frame.side_by_side(cells_of_rows))
