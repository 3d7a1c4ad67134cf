"""Counts how many pods a workload makes that nodes refuse, with and without claimctl."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import yaml
from kube_in_process.components.kubelet.admission import REFUSED_ON
from kube_in_process.components.objects import uid
from kube_in_process.components.pods import phase

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.events import EventRecorder
from claimctl.kube.leases import LeaderElection
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from claimctl_reschedule.plan.planning import plan
from claimctl_reschedule.policyfile.reading import check
from claimctl_reschedule.run.execution import RunSettings
from claimctl_reschedule.run.loop import Loop, election_settings
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule.run.signs import Signs
from labs.cells import CELL_LABEL, furnish
from labs.placing.means import deployment
from labs.placing.placement import DEPLOYMENT, fill, pods_of

LOOP_SECONDS = 20.0


@dataclass(slots=True)
class LoopOutcome:
    """What became of a pod that nodes refuse."""

    refused: int = 0
    seconds: float | None = None
    """Until it ran; None: it did not run."""


async def looped(
    transport: Transport, space: str, nodes: tuple[str, ...], bad: int, args: dict[str, Any] | None
) -> LoopOutcome:
    """Create a workload that the first ``bad`` nodes refuse.

    Args:
        args: of UnplaceablePods; None: no claimctl runs.
    """
    client = DocumentClient(transport, "people")
    await furnish(client, space, nodes)
    for node in nodes[bad:]:
        await fill(client, space, node, "20")
    task = asyncio.create_task(_loop(transport, space, args).run()) if args is not None else None
    await asyncio.sleep(3.0)
    began = asyncio.get_running_loop().time()
    refusals = ",".join(nodes[:bad])
    await client.create(deployment(space, "owner", 1, annotations={REFUSED_ON: refusals}))
    outcome, seen = LoopOutcome(), set[str]()
    while (now := asyncio.get_running_loop().time()) < began + LOOP_SECONDS:
        pods = await pods_of(client, space, "owner")
        seen |= {uid(pod) for pod in pods if phase(pod) == "Failed"}
        if any(phase(pod) == "Running" for pod in pods):
            outcome.seconds = now - began
            break
        await asyncio.sleep(0.05)
    outcome.refused = len(seen)
    if task is not None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    await client.patch(DEPLOYMENT, space, "owner", {"spec": {"replicas": 0}})
    return outcome


def _loop(transport: Transport, space: str, args: dict[str, Any] | None) -> Loop:
    policy = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "nodeSelector": f"{CELL_LABEL}={space}",
        "profiles": [
            {
                "name": "places",
                "pluginConfig": [{"name": "UnplaceablePods", "args": args}],
                "plugins": {"deschedule": {"enabled": ["UnplaceablePods"]}},
            }
        ],
    }
    clock = LoopClock()
    client = Client(transport, clock)
    wanted = check(yaml.safe_load(yaml.safe_dump(policy))).policy
    events = EventRecorder(client, clock, "claimctl.io/rescheduler", "measured")
    runner = Runner(
        client=client,
        clock=clock,
        policy=wanted,
        planner=plan,
        records=Records(client, space),
        settings=RunSettings(),
        signs=Signs(client.telemetry, events),
        rng=Random(0),
    )
    settings = election_settings("default")
    election = LeaderElection(client, clock, settings, space, rng=Random(0))
    return Loop(runner, election, 300.0, events)
