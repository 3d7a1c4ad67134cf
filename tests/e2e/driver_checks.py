"""Run a check of the scenario's driver, and look for what it leaves."""

from __future__ import annotations

from claimctl.cli.progress import Progress
from claimctl.commands.drivers.verdict import NodeSeen
from claimctl.commands.drivers.work import CheckRun, CheckWanted, examine
from claimctl.kube.client import Client
from claimctl.kube.discovery import use_served_versions
from claimctl.wire.resources import JOBS, PODS, RESOURCECLAIMS
from claimctl.wire.seams import Transport
from tests.e2e.harness import NAMESPACE, Stage

IMAGE = "registry.k8s.io/pause:3.10"


async def checked(
    stage: Stage, transport: Transport | None = None, *, node: str = "", seconds: float = 60.0
) -> CheckRun:
    client = stage.client
    if transport is not None:
        client = Client(transport, stage.clock)
        await use_served_versions(client)
    wanted = CheckWanted(stage.site.fleet.driver, node, "", IMAGE, seconds)
    return await examine(client, NAMESPACE, wanted, Progress(stage.clock.monotonic))


async def checked_node(stage: Stage, seconds: float = 60.0) -> NodeSeen:
    run = await checked(stage, node=stage.site.nodes[0], seconds=seconds)
    (seen,) = run.nodes.values()
    return seen


async def left(stage: Stage) -> list[str]:
    """What there is in the namespace, of everything that a check makes."""
    kinds = (JOBS, PODS, RESOURCECLAIMS)
    listings = [await stage.client.list(kind, NAMESPACE) for kind in kinds]
    return [each.metadata.name for listing in listings for each in listing.items]


async def until_nothing_is_left(stage: Stage) -> None:
    async def holds() -> bool:
        return await left(stage) == []

    await stage.until(holds, "the check has left nothing")
    assert stage.site.driver.prepared == []
