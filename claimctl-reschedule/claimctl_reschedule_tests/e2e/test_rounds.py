"""Critical pods come to a full cluster, round after round: each gets a node, and nothing stays.

The loop looks once an hour by itself, so that it has to be woken for each pod.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.reservation.facts.pods import unschedulable_since
from claimctl.wire.resources import DEPLOYMENTS, PODS, RESOURCECLAIMS, RESOURCECLAIMTEMPLATES
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule_tests.e2e.rescheduling import (
    CRITICAL,
    TOLERATES,
    app_of,
    devices,
    taints,
    workload,
)
from claimctl_reschedule_tests.e2e.unplaceable import looping, pods, status
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE, Stage

NODES, ON_EACH = 3, 10
PLACES = NODES * ON_EACH
ROUNDS, IN_REAL_TIME = 10, 3
NAMES = tuple(f"vital-{number}" for number in range(10))
VICTIMS = 2
"""Each critical pod needs the room of so many others."""
WAKE_SECONDS = 5.0
"""From Unschedulable until the first one is bound: one second of waiting, and the run."""

pytestmark = pytest.mark.cluster(
    ClusterOptions(
        preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=NODES, devices_per_node=ON_EACH
    )
)


@dataclass(slots=True)
class Round:
    """What was seen of one round, by looking again and again."""

    stage: Stage
    unschedulable: dict[str, float] = field(default_factory=dict)
    """By critical pod: when it was first seen without a place."""
    bound: dict[str, float] = field(default_factory=dict)
    placed: set[str] = field(default_factory=set)
    """The UIDs of all other pods that had a node."""

    async def is_over(self) -> bool:
        now = self.stage.clock.monotonic()
        for pod in await pods(self.stage):
            name = pod.metadata.name
            if name in NAMES and pod.spec.node_name:
                self.bound.setdefault(name, now)
            elif name in NAMES and unschedulable_since(pod):
                self.unschedulable.setdefault(name, now)
            elif pod.spec.node_name:
                self.placed.add(pod.metadata.uid)
        return len(self.bound) == len(NAMES)

    @property
    def seconds(self) -> list[float]:
        """How long each waited, the shortest first."""
        first = min(self.unschedulable.values())
        since = self.unschedulable
        return sorted(when - since.get(name, first) for name, when in self.bound.items())


async def _of_devices(stage: Stage) -> dict[str, Any]:
    """Each pod has a device, and critical pods want two."""
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template("own"))
    await stage.create(DEPLOYMENTS, workload("train", PLACES, template="own"))
    container = {"resources": {"claims": [{"name": "gpu"}]}}
    return {"containers": [container], "priorityClassName": "system-cluster-critical"}


async def _of_cpu(stage: Stage) -> dict[str, Any]:
    """All cpu is requested, and critical pods have the marks of 2018, which no scheduler knows."""
    await stage.create(DEPLOYMENTS, workload("train", PLACES, requests={"cpu": "6"}))
    return {"containers": [{"resources": {"requests": {"cpu": "12"}}}]}


async def _come(stage: Stage, wanted: dict[str, Any]) -> None:
    """All critical pods at once."""
    by_class = "priorityClassName" in wanted
    marks = {} if by_class else {"scheduler.alpha.kubernetes.io/critical-pod": ""}
    container = {"name": "main", "image": "x", **wanted["containers"][0]}
    for name in NAMES:
        spec = {**wanted, "containers": [container], "tolerations": TOLERATES}
        if by_class:
            await stage.create(RESOURCECLAIMS, devices(name, VICTIMS))
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        meta = {"name": name, "namespace": NAMESPACE, "annotations": marks}
        await stage.create(PODS, {"metadata": meta, "spec": spec})


async def _go(stage: Stage, wanted: dict[str, Any]) -> None:
    """The critical pods have done their work."""
    for name in NAMES:
        await stage.delete(PODS, name)
    await stage.until(lambda: _are_gone(stage), "the critical pods are gone")
    for name in NAMES if "priorityClassName" in wanted else ():
        await stage.delete(RESOURCECLAIMS, name)


async def _are_gone(stage: Stage) -> bool:
    return all([await stage.gone(PODS, name) for name in NAMES])


async def _nothing_stays(stage: Stage, process: Runner) -> bool:
    """Whether all nodes are open, and the record has neither taints nor attempts in vain."""
    left = await status(process)
    is_open = [await taints(stage, node) for node in range(NODES)] == [[]] * NODES
    return is_open and (left.taints, left.attempts) == ((), ())


@pytest.mark.long
@pytest.mark.parametrize("filled", [_of_devices, _of_cpu], ids=["devices", "cpu"])
async def test_ten_rounds_of_ten_critical_pods(
    stage: Stage, filled: Callable[[Stage], Any]
) -> None:
    wanted = await filled(stage)
    await stage.until_running(PLACES)
    space = (await pods(stage))[0].metadata.namespace
    patient = CRITICAL.replace("TimeoutSeconds: 30", "TimeoutSeconds: 60")
    policy = patient.replace("{unsch", f"{{systemNamespaces: [{space}], unsch")
    async with looping(stage, policy, interval=3600.0) as loop:
        process = loop.runner
        for _ in range(ROUNDS if stage.cluster else IN_REAL_TIME):
            seen = Round(stage)
            await seen.is_over()
            await _come(stage, wanted)
            await stage.until(seen.is_over, "all are bound", within=100)
            await stage.until(lambda: _nothing_stays(stage, process), "nothing stays", within=5)
            assert seen.seconds[0] <= WAKE_SECONDS * (1 if stage.cluster else stage.site.patience)
            # each victim was evicted once, and no replacement took the room meanwhile; a real
            # scheduler may leave a room alone until the node opens at its deadline
            again = len(seen.placed) - PLACES
            assert again == 0 or (stage.cluster is None and again == VICTIMS)
            running = [pod for pod in await stage.running() if app_of(pod) == "train"]
            assert len(running) == PLACES - VICTIMS * len(NAMES)
            await _go(stage, wanted)
            await stage.until_running(PLACES)
