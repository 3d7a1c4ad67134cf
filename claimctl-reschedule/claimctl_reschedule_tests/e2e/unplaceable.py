"""Pods that nodes refuse, and a loop of ``claimctl reschedule`` that looks after them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import yaml
from kube_in_process.components.kubelet.admission import REFUSED_ON, REFUSES

from claimctl.kube.errors import ApiError, NotServed
from claimctl.kube.events import EventRecorder
from claimctl.kube.leases import LeaderElection
from claimctl.wire.resources import DEPLOYMENTS
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from claimctl_reschedule.plan.refusals import is_braked, refusal
from claimctl_reschedule.run.loop import Loop, election_settings
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule.run.signs import Signs
from claimctl_reschedule.shapes.records import RescheduleRecordStatus
from claimctl_reschedule.shapes.scheduling import SCHEDULING_PODS, SchedulingPod
from claimctl_reschedule_tests.e2e.rescheduling import places, runner, workload
from tests.e2e.harness import NAMESPACE, Stage
from tests.e2e.site import CONTROLLER_NAMESPACE, PEOPLE

POLICY_FILE = Path(__file__).parents[3] / "deploy/rescheduler/avoidance/avoidance.yaml"
REASON = "UnexpectedAdmissionError"


def unplaceable(**args: Any) -> str:
    """A policy file with UnplaceablePods and these args."""
    return yaml.safe_dump(
        {
            "apiVersion": "descheduler/v1alpha2",
            "kind": "DeschedulerPolicy",
            "profiles": [
                {
                    "name": "places",
                    "pluginConfig": [{"name": "UnplaceablePods", "args": args}],
                    "plugins": {"deschedule": {"enabled": ["UnplaceablePods"]}},
                }
            ],
        }
    )


def policy_documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(POLICY_FILE.read_text(encoding="utf-8")))


async def install_policy(stage: Stage) -> bool:
    """Install the admission policy; whether the cluster serves it."""
    client = DocumentClient(stage.site.connection(PEOPLE), "people")
    for document in policy_documents():
        try:
            await client.create(document)
        except NotServed:
            return False
        except ApiError as refused:
            if refused.status != 409:
                raise
    return True


async def remove_policy(stage: Stage, *kinds: str) -> None:
    client = DocumentClient(stage.site.connection(PEOPLE), "people")
    for document in policy_documents():
        if not kinds or document["kind"] in kinds:
            kind = (document["apiVersion"], document["kind"])
            await client.delete(kind, "", document["metadata"]["name"])


def refused_on(*nodes: str, replicas: int = 1, **given: Any) -> dict[str, Any]:
    """A Deployment whose pods these nodes refuse."""
    annotation = ",".join(f"{node}={REASON}" for node in nodes)
    return workload("web", replicas, annotations={REFUSED_ON: annotation}, **given)


async def refuse(stage: Stage, reason: str | None = REASON, *nodes: str) -> None:
    """Nodes refuse every new pod from now on; None: they take pods again."""
    for node in nodes or stage.site.nodes:
        await stage.site.patch_node(node, {"metadata": {"annotations": {REFUSES: reason}}})


async def pods(stage: Stage) -> list[SchedulingPod]:
    return list((await stage.client.list(SCHEDULING_PODS, NAMESPACE)).items)


async def refused(stage: Stage) -> list[str]:
    """The names of the refused pods that are there."""
    return [each.metadata.name for each in await pods(stage) if refusal(each) is not None]


async def braked(stage: Stage) -> list[str]:
    return [each.metadata.name for each in await pods(stage) if is_braked(each)]


def ever_refused(stage: Stage) -> set[str]:
    """The UIDs of all pods that were ever refused (embedded cluster)."""
    return {
        each.object()["metadata"]["uid"]
        for each in stage.embedded.history()
        if each.plural == "pods" and (each.object().get("status") or {}).get("reason") == REASON
    }


async def status(process: Runner) -> RescheduleRecordStatus:
    found = await process.records.read()
    return found.status if found is not None else RescheduleRecordStatus()


@asynccontextmanager
async def looping(
    stage: Stage, policy: str, transport: Transport | None = None, interval: float = 30.0
) -> AsyncIterator[Loop]:
    """The Deployment of the rescheduler."""
    process = runner(stage, policy, transport)
    space = stage.site.settings.get("lease_namespace", CONTROLLER_NAMESPACE)
    # real servers may be slow
    settings = replace(election_settings(space), lease_duration=60.0, renew_deadline=40.0)
    election = LeaderElection(process.client, stage.clock, settings, "one", rng=Random(1))
    events = EventRecorder(process.client, stage.clock, "claimctl.io/rescheduler", "one")
    process.signs = Signs(process.client.telemetry, events)
    loop = Loop(process, election, interval, events)
    run = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        process.stop.set()
        await asyncio.wait([run], timeout=60)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def runs(stage: Stage, node: str = "", count: int = 1, app: str = "web") -> bool:
    found = await places(stage, app)
    return (found[node] if node else sum(found.values())) == count


async def attractive(stage: Stage, node: int = 0) -> None:
    """The scheduler prefers the node: all others have more to do."""
    for index, name in enumerate(stage.site.nodes):
        if index != node:
            there = {"nodeSelector": {"kubernetes.io/hostname": name}}
            body = workload(f"filler-{index}", 1, requests={"cpu": "20"}, spec=there)
            await stage.create(DEPLOYMENTS, body)
    await stage.until_running(len(stage.site.nodes) - 1)


def is_live(pod: SchedulingPod) -> bool:
    return pod.metadata.name.startswith("web") and pod.status.phase == "Running"
