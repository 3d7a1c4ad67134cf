"""Plans that are made by hand, and runs that execute them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from random import Random
from typing import Any

from claimctl.installation import LEASE_NAME
from claimctl.kube.client import Client
from claimctl.kube.errors import AlreadyExists
from claimctl.wire.coordination import Lease, LeaseSpec, micro_time
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import DEPLOYMENTS, LEASES, NAMESPACES, NODES, PODS
from claimctl.wire.seams import Transport
from claimctl.wire.traces import (
    CRITICAL_TAINT,
    MOVING_TAINT,
    TAINT_VALUE_PREFIX,
)
from claimctl_reschedule.plan.facts import CRITICAL, facts_of
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.plan import Move, Owner, Plan, PodRef, TaintStep
from claimctl_reschedule.plan.policy import Policy
from claimctl_reschedule.run.execution import RunSettings
from claimctl_reschedule.run.observing import cluster_uid
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule.run.signs import Signs
from claimctl_reschedule.shapes.scheduling import SCHEDULING_PODS, SchedulingPod
from tests.e2e.harness import NAMESPACE, Stage
from tests.e2e.site import CONTROLLER_NAMESPACE

QUICK = RunSettings(deadline=60.0, landing=20.0, poll=0.5)


def plain_deployment(name: str = "web", replicas: int = 3, **spec: Any) -> dict[str, Any]:
    """A Deployment whose pods use no claim."""
    template = {"labels": {"app": name}}
    containers = [{"name": "main", "image": "web"}]
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": template, "spec": {"containers": containers, **spec}},
        },
    }


async def running(stage: Stage, name: str = "web", replicas: int = 3) -> list[SchedulingPod]:
    """The pods of a new Deployment, once they run."""
    await stage.create(DEPLOYMENTS, plain_deployment(name, replicas))

    async def ready() -> bool:
        return len([pod for pod in await pods(stage) if _of(pod, name)]) == replicas

    await stage.until(ready, f"{replicas} pods of {name} run")
    return sorted(
        (pod for pod in await pods(stage) if _of(pod, name)), key=lambda pod: pod.metadata.name
    )


async def pods(stage: Stage) -> tuple[SchedulingPod, ...]:
    return (await stage.client.list(SCHEDULING_PODS, NAMESPACE)).items


def _of(pod: SchedulingPod, name: str) -> bool:
    labels = pod.metadata.labels or {}
    return labels.get("app") == name and pod.status.phase == "Running"


def move(pod: SchedulingPod, *, unit: str = "", destination: str = "", closes: str = "") -> Move:
    owner = pod.metadata.controller()
    return Move(
        strategy="Test",
        pod=ref(pod),
        owner=Owner(kind=owner.kind, name=owner.name, uid=owner.uid) if owner else None,
        destination=destination,
        unit=unit,
        closes=closes,
        facts=facts_of(pod),
    )


def ref(pod: SchedulingPod) -> PodRef:
    meta = pod.metadata
    return PodRef(namespace=meta.namespace, name=meta.name, uid=meta.uid, node=pod.spec.node_name)


async def plan_of(stage: Stage, moves: Iterable[Move], *taints: TaintStep) -> Plan:
    return Plan(
        made_at=stage.clock.now(),
        cluster_uid=await cluster_uid(stage.client),
        moves=tuple(moves),
        taints=taints,
    ).sealed()


def runner(
    stage: Stage,
    transport: Transport | None = None,
    settings: RunSettings = QUICK,
    plan: Plan | None = None,
) -> Runner:
    """A process. It plans nothing, or what is given."""

    def planner(observed: Observed, policy: Policy) -> Plan:
        empty = Plan(made_at=observed.now, cluster_uid=observed.cluster_uid).sealed()
        return plan or empty

    client = Client(transport or stage.embedded.transport(), stage.clock)
    return Runner(
        client=client,
        clock=stage.clock,
        policy=Policy(),
        planner=planner,
        records=Records(client),
        settings=settings,
        signs=Signs(client.telemetry),
        rng=Random(0),
        stop=asyncio.Event(),
    )


async def critical(stage: Stage, name: str = "critical") -> SchedulingPod:
    """A critical pod that waits: its scheduler is ``make_room``."""
    await stage.client.create(
        PODS,
        {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "annotations": {CRITICAL: ""},
            },
            "spec": {
                "schedulerName": "by-hand",
                "tolerations": [{"key": CRITICAL_TAINT, "operator": "Exists"}],
                "containers": [{"name": "main", "image": "dns"}],
            },
        },
        NAMESPACE,
    )
    return await stage.client.get(SCHEDULING_PODS, name, NAMESPACE)


async def taint_step(
    stage: Stage, node: str, pod: SchedulingPod, unit: str, *, critical: bool = True
) -> TaintStep:
    return TaintStep(
        node=node,
        node_uid=(await stage.client.get(NODES, node)).metadata.uid,
        key=CRITICAL_TAINT if critical else MOVING_TAINT,
        value=f"{TAINT_VALUE_PREFIX}{pod.metadata.uid}",
        unit=unit,
        pod=ref(pod) if critical else None,
        timeout_seconds=40.0,
    )


async def led_since(stage: Stage) -> datetime:
    """Write the Lease of a controller that leads for an hour; since when it does."""
    since = stage.clock.now()
    spec = LeaseSpec(
        holder_identity="controller",
        lease_duration_seconds=3600,
        acquire_time=micro_time(since),
        renew_time=micro_time(since),
    )
    meta = ObjectMeta(name=LEASE_NAME, namespace=CONTROLLER_NAMESPACE)
    with suppress(AlreadyExists):
        await stage.client.create(NAMESPACES, {"metadata": {"name": CONTROLLER_NAMESPACE}})
    await stage.client.create(LEASES, Lease(metadata=meta, spec=spec), CONTROLLER_NAMESPACE)
    return since


async def make_room(stage: Stage, node: str, name: str = "critical") -> None:
    """Bind the critical pod to a node."""
    stage.embedded.admin.bind(NAMESPACE, name, node)


def evictions(stage: Stage, *, since: int = 0) -> list[str]:
    """The names of pods whose deletion began, in this order."""
    seen: dict[str, str] = {}
    for revision in stage.embedded.history(since):
        meta = revision.object()["metadata"] if revision.plural == "pods" else {}
        if meta.get("deletionTimestamp"):
            seen.setdefault(meta["uid"], meta["name"])
    return list(seen.values())


async def until_evicted(stage: Stage) -> None:
    """Wait until the deletion of a pod has begun."""
    while not evictions(stage):
        await stage.clock.sleep(0.01)
