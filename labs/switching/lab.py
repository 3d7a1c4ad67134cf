"""Switches PodGroups off and on again on a busy real control plane.

Claims are shared by the pods of Deployments through PodGroups, while users scale the Deployments
and delete pods. The commands of docs/runbooks/downgrade.md are run word for word, and every gate is
switched where the page says so. With ``--order naive`` nothing is prepared.

Exit code 1 if a kubelet refused a pod, a pod ran without an allocation, or the end differs from the
beginning.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from kube_in_process.real.flags import Parser, Servers, number
from kube_in_process.real.servers.plane import ControlPlane, Wanted

from claimctl.kube.transport import HttpTransport
from labs import frame
from labs.switching.passage import NAIVE, RUNBOOK, SwitchingPassage
from labs.torture_real.controllers import Controllers

MOST_PODS = 250
"""A claim has 256 places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchingOptions(Servers):
    """``pods`` is the greatest number of pods of each claim; ``seed`` that of the user actions."""

    claims: int
    pods: int
    order: str
    seed: int


def main(arguments: Sequence[str]) -> int:
    parser = Parser("labs switching", __doc__)
    parser.add_servers(gates=False)
    parser.set_defaults(pod_groups=True)
    parser.add_argument("--claims", type=number(1), default=40, help="%(default)s by default")
    parser.add_argument("--pods", type=number(2, MOST_PODS), default=20, help="of each claim")
    parser.add_argument("--order", choices=(RUNBOOK, NAIVE), default=RUNBOOK)
    parser.add_argument("--seed", type=number(), default=0, help="of the user actions")
    options = parser.read(arguments, SwitchingOptions)

    async def play(plane: ControlPlane, transport: HttpTransport) -> int:
        controllers = Controllers(plane.files, plane.directory)
        passage = SwitchingPassage(plane, transport, options.claims, options.pods, options.seed)
        try:
            await passage.play(controllers, naive=options.order == NAIVE)
        except AssertionError as error:
            # a command of the page ended with another exit code than the page says
            print(error, file=sys.stderr)
            return 1
        finally:
            await asyncio.to_thread(controllers.stop_all)
        passage.wrong += controllers.tracebacks()
        print(frame.figures(_lines(options, passage)))
        return 1 if passage.refused or passage.forbidden or passage.wrong else 0

    return frame.on_servers(options, Wanted(pod_groups=True), play)


def _lines(options: SwitchingOptions, passage: SwitchingPassage) -> list[tuple[str, object]]:
    times = ", ".join(f"{step} {seconds:.0f}" for step, seconds in passage.times.items())
    return [
        ("switching", f"{options.label}, {options.order} order"),
        ("size", f"{options.claims} claims x {options.pods} pods"),
        ("user actions", passage.workloads.actions),
        ("seconds", times),
        ("pods refused", frame.some(passage.refused)),
        ("found on nodes", frame.some(passage.forbidden)),
        ("other than expected", frame.some(passage.wrong)),
    ]
