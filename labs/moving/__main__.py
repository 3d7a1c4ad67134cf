"""``make moving``: where does a pod with claims go that is evicted?

It plays every cell of ``cells.py`` on a real control plane, side by side, and prints the table of
docs/reschedule.md: by cell, how many replacements ran on the same node, on another one, or not.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from claimctl.kube.connection import load_connection
from claimctl.kube.documents import DocumentClient
from claimctl.kube.transport import HttpTransport
from claimctl.wire.seams import Transport
from claimctl_demo.real_servers.kubelet import Kubelets
from claimctl_demo.real_servers.nodes import Fleet
from claimctl_demo.real_servers.plane import ControlPlane, running
from claimctl_demo.real_servers.pod_worker import Pace
from claimctl_demo.real_servers.programs import CannotStart
from labs.differential.assets import programs_of
from labs.moving.cells import Cell, Closing, cells
from labs.moving.tries import Try
from tests.support.variables import BadOption, number_of

NODES = 3
"""The number of nodes of each cell."""
DEVICES = 4
STOP_SECONDS = 1.0
"""How long containers take to stop."""


async def measure(
    transport: Transport, fleet: Fleet, wanted: Sequence[Cell], evictions: int
) -> list[Try]:
    """Play the cells side by side on the nodes of the fleet, NODES for each cell.

    Raises:
        TimeoutError: a workload does not run.
    """
    client = DocumentClient(transport, "people")
    tries = [
        Try(
            client,
            cell,
            fleet.names[NODES * index : NODES * (index + 1)],
            fleet.claims,
            fleet.device_class,
        )
        for index, cell in enumerate(wanted)
    ]
    async with asyncio.TaskGroup() as group:
        for each in tries:
            group.create_task(each.play(evictions))
    return tries


def table(tries: Sequence[Try]) -> str:
    """The results as a table in Markdown."""
    lines = [
        "| workload | " + " | ".join(f"node {each}" for each in Closing) + " |",
        "| --- " * (len(Closing) + 1) + "|",
    ]
    by_row: dict[str, list[str]] = {}
    for each in tries:
        by_row.setdefault(each.cell.row, []).append(each.outcome.shown)
    lines += [f"| {row} | {' | '.join(found)} |" for row, found in by_row.items()]
    return "\n".join(lines)


async def _on_plane(plane: ControlPlane, evictions: int) -> list[Try]:
    wanted = cells()
    fleet = Fleet(plane.programs.version, count=NODES * len(wanted), devices=DEVICES)
    async with HttpTransport(load_connection(str(plane.files.kubeconfig()))) as transport:
        kubelets = Kubelets(transport, fleet, pace=Pace(stop=STOP_SECONDS))
        joined = asyncio.Event()
        playing = asyncio.create_task(kubelets.run(joined))
        waiting = asyncio.create_task(joined.wait())
        try:
            await asyncio.wait({playing, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if playing.done():
                playing.result()
            return await measure(transport, fleet, wanted, evictions)
        finally:
            for task in (playing, waiting):
                task.cancel()
            await asyncio.gather(playing, waiting, return_exceptions=True)


def main() -> int:
    try:
        programs = programs_of(os.environ.get("VERSION", ""))
        evictions = int(number_of(os.environ, "EVICTIONS", 4, least=1))
    except (BadOption, CannotStart) as error:
        print(error, file=sys.stderr)
        return 2
    with (
        tempfile.TemporaryDirectory() as folder,
        running(ControlPlane(programs, Path(folder))) as plane,
    ):
        tries = asyncio.run(_on_plane(plane, evictions))
    print(f"Kubernetes {programs.text}, same node / moved / not running:\n")
    print(table(tries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
