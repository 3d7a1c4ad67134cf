"""What scenarios on real nodes share: the driver, its calls, and waiting for them."""

from __future__ import annotations

from typing import Any

from kube_in_process.device_witness import Use, uses_of
from kube_in_process.habits.call import Call
from kube_in_process.real.nodes.pods import DEAF
from kube_in_process.storage.store import Revision

from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import Stage
from tests.e2e.nodes.machines import NodeMachines
from tests.e2e.real_cluster import RealSite


def machines(stage: Stage) -> NodeMachines:
    """The nodes of a scenario."""
    assert isinstance(stage.site, RealSite)
    assert isinstance(stage.site.machines, NodeMachines)
    return stage.site.machines


def calls(stage: Stage, verb: str = "") -> list[Call]:
    """The calls that the driver has answered, of one verb or of both."""
    return [each for each in machines(stage).driver.calls() if verb in ("", each.verb)]


def uses(stage: Stage) -> list[Use]:
    """When which claim was prepared."""
    return uses_of(calls(stage))


async def until_called(stage: Stage, kind: str, count: int = 1, within: float = 60.0) -> Call:
    """Wait until the driver has answered so many calls of a kind; returns the last one."""

    async def holds() -> bool:
        return len(calls(stage, kind)) >= count

    await stage.until(holds, f"{count} calls of {kind}", within)
    return calls(stage, kind)[count - 1]


async def until_unprepared(stage: Stage, within: float = 60.0) -> None:
    """Wait until no claim is prepared."""

    async def holds() -> bool:
        return bool(uses(stage)) and all(use.until < float("inf") for use in uses(stage))

    await stage.until(holds, "no claim is prepared", within)


async def starts(stage: Stage) -> list[float]:
    """Seconds from each pod's creation until it ran, in the order of their creation."""
    created: dict[str, Revision] = {}
    took: dict[str, float] = {}
    for each in await stage.site.history():
        if each.plural == "pods" and each.type != "DELETED":
            pod = each.object()
            uid = pod["metadata"]["uid"]
            created.setdefault(uid, each)
            if pod["status"].get("phase") == "Running":
                took.setdefault(uid, each.at - created[uid].at)
    return [took[uid] for uid in created if uid in took]


async def hold_deaf_pods(stage: Stage, replicas: int, seconds: int, **spec: Any) -> None:
    """Hold a claim for a Deployment whose containers ignore SIGTERM.

    Args:
        seconds: the pods' grace period.
        spec: more of the ClaimReservation's spec.
    """
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = make_deaf(manifests.deployment(replicas=replicas), seconds)
    await stage.create(DEPLOYMENTS, body)
    await stage.create(CLAIMRESERVATIONS, manifests.reservation(**spec))
    await stage.until_running(replicas)
    await stage.until_condition("Reserved", "True", "Reserved")


def make_deaf(body: dict[str, Any], seconds: int) -> dict[str, Any]:
    """Let the containers of a workload ignore SIGTERM, with a grace period of some seconds."""
    template = body["spec"]["template"]
    template["metadata"].setdefault("annotations", {})[DEAF] = "yes"
    template["spec"]["terminationGracePeriodSeconds"] = seconds
    return body
