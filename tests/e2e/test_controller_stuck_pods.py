"""Pods that find no node because of a hold: the hold gives way to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from claimctl.reservation.facts.pods import is_stuck
from claimctl.wire.reservations import REALLOCATE_ANNOTATION
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    PODS,
    RESOURCECLAIMS,
)
from tests.e2e import manifests
from tests.e2e.drivers import pool_of
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.scenes import list_ahead, pod_on, with_claim

pytestmark = pytest.mark.cluster(replace(HOLD_136, nodes=2))

TIMES: dict[str, Any] = {"binding_seconds": 2.0, "slow_binding_seconds": 3.0}
TIMEOUT = 2
"""reallocateTimeoutSeconds"""


def reservation(name: str = "train-slice", **spec: Any) -> dict[str, Any]:
    return manifests.reservation(name, reallocateTimeoutSeconds=TIMEOUT, **spec)


def elsewhere(stage: Stage, *places: str) -> str:
    """The name of a node on which nothing is."""
    return next(node for node in stage.site.nodes if node not in places)


async def runs_on(stage: Stage, node: str, pods: int = 1) -> None:
    async def holds() -> bool:
        return sum(pod.spec.node_name == node for pod in await stage.running()) == pods

    await stage.until(holds, f"{pods} pods run on {node}", within=20)


def one_per_node(body: dict[str, Any]) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": "train"}}}
    rule = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {**term, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
    body["spec"]["template"]["spec"]["affinity"] = {"podAntiAffinity": rule}
    return body


@pytest.mark.core
async def test_entries_listed_ahead_do_not_stay_behind_a_withdrawn_reservation(
    stage: Stage,
) -> None:
    """Two entries of pending pods would keep the claim allocated for ever."""
    await stage.started(**TIMES, list_ahead=False)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(CLAIMRESERVATIONS, reservation())
    await stage.create(DEPLOYMENTS, one_per_node(manifests.deployment(replicas=1)))
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved")
    (first,) = await stage.running()
    here, there = first.spec.node_name, elsewhere(stage, first.spec.node_name)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 3}})
    await stage.until(lambda: _pods(stage, 3), "two more pods wait")
    await list_ahead(stage)
    await stage.delete(CLAIMRESERVATIONS, "train-slice")
    await stage.until(lambda: stage.gone(CLAIMRESERVATIONS, "train-slice"), "it is withdrawn")
    await stage.cordon(here)
    await stage.delete(PODS, first.metadata.name)
    await runs_on(stage, there)


@pytest.mark.core
async def test_pods_that_a_killed_scheduler_left_listed_run_elsewhere(stage: Stage) -> None:
    """The scheduler frees a claim only for a pod that is alone in the list."""
    await stage.started(**TIMES, list_ahead=False)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.reservation("train-slice", reallocateTimeoutSeconds=600)
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1))
    await stage.until_condition("Reserved", "True", "Reserved")
    here = await pool_of(stage)
    await stage.cordon(here)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_listed("deployments/train")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until(lambda: _unschedulable(stage, 2), "two pods find no node")
    await list_ahead(stage, by="kube-scheduler")
    asked = {REALLOCATE_ANNOTATION: (await stage.claim()).metadata.uid}
    await stage.patch(CLAIMRESERVATIONS, "train-slice", {"metadata": {"annotations": asked}})
    await runs_on(stage, elsewhere(stage, here), pods=2)


async def test_a_pod_that_a_hold_pins_says_so_where_people_look(stage: Stage) -> None:
    """The condition, and an Event on the pod, name the node and the way out, for as long as that
    is so."""
    await stage.started(**TIMES)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.reservation("train-slice", reallocationPolicy="Never")
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1))
    await stage.until_condition("Reserved", "True", "Reserved")
    here = await pool_of(stage)
    await stage.cordon(here)
    (first,) = await stage.running()
    await stage.delete(PODS, first.metadata.name)
    await stage.until_condition("Released", "False", "PodsPinned")
    (waiting,) = (await stage.client.list(PODS, NAMESPACE)).items

    command = f"claimctl release slice -n {NAMESPACE}"

    async def told() -> bool:
        events = (await stage.client.list(EVENTS, NAMESPACE)).items
        notes = [it.note for it in events if it.regarding.uid == waiting.metadata.uid]
        return any(here in note and command in note for note in notes)

    await stage.until(told, "an Event on the pod names the node and the command")
    await stage.cordon(here, unschedulable=False)
    await stage.until_running(1)
    await stage.until_condition("Released", "False", "Held")


async def _unschedulable(stage: Stage, count: int) -> bool:
    pods = (await stage.client.list(PODS, NAMESPACE)).items
    return sum(is_stuck(pod) for pod in pods) == count


async def _pods(stage: Stage, count: int) -> bool:
    return len((await stage.client.list(PODS, NAMESPACE)).items) == count


@pytest.mark.core
async def test_a_job_gets_the_claim_of_one_that_has_ended_on_another_node(stage: Stage) -> None:
    await stage.started(**TIMES)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(CLAIMRESERVATIONS, reservation(kind="Job"))
    await stage.create(JOBS, manifests.job(seconds=4))
    await stage.until_condition("Reserved", "True", "Reserved")
    there = elsewhere(stage, await pool_of(stage))
    body = manifests.job("second", seconds=600)
    body["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": there}
    await stage.create(JOBS, body)
    await runs_on(stage, there)


async def asks_for_release(stage: Stage) -> None:
    """Ask as ``claimctl release`` does."""
    asked = {"claimctl.io/release": (await stage.claim()).metadata.uid}
    await stage.patch(CLAIMRESERVATIONS, "train-slice", {"metadata": {"annotations": asked}})


async def waits(_: Stage) -> None:
    """Nobody asks: the hold is idle for longer than its timeout, or its pods are stuck."""


@pytest.mark.parametrize(
    ("policy", "patience", "end"),
    [
        ("WhileRunning", TIMEOUT, waits),
        ("Persistent", TIMEOUT, waits),
        ("Persistent", None, asks_for_release),
    ],
    ids=["idle", "persistent", "asked"],
)
async def test_an_idle_hold_gives_way_to_a_pod_of_somebody_else(
    stage: Stage, policy: str, patience: int | None, end: Callable[[Stage], Awaitable[None]]
) -> None:
    await stage.started(**TIMES)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = reservation(retentionPolicy=policy, idleTimeoutSeconds=1)
    body["spec"]["reallocateTimeoutSeconds"] = patience
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.create(DEPLOYMENTS, manifests.deployment())
    await stage.until_condition("Reserved", "True", "Reserved")
    there = elsewhere(stage, await pool_of(stage))
    await stage.create(PODS, pod_on(there))
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})

    async def is_idle() -> bool:
        # the other pod may have got the claim before anybody looks
        return not any(entry.startswith("pods/train") for entry in await stage.references())

    await stage.until(is_idle, "the pods of train have left the list")
    await end(stage)
    await runs_on(stage, there)


@pytest.mark.cluster(replace(HOLD_136, nodes=2, devices_per_node=2))
async def test_two_held_claims_that_fit_on_no_common_node_are_given_up(stage: Stage) -> None:
    await stage.started(**TIMES)
    for name in ("one", "two", "three"):
        await stage.create(RESOURCECLAIMS, manifests.claim(name))
    for name in ("one", "two"):
        body = reservation(f"train-{name}", claim=name, retentionPolicy="Persistent")
        await stage.create(CLAIMRESERVATIONS, body)
    await stage.create(DEPLOYMENTS, with_claim(manifests.deployment(claim="one"), "two"))
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved", name="train-one")
    await stage.until_condition("Reserved", "True", "Reserved", name="train-two")
    here = await pool_of(stage, "one")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_listed("deployments/train", claim="two")
    asked = {REALLOCATE_ANNOTATION: (await stage.claim("two")).metadata.uid}
    await stage.patch(CLAIMRESERVATIONS, "train-two", {"metadata": {"annotations": asked}})
    await stage.until_released("two")
    await stage.create(PODS, pod_on(here, claim="three"))
    await runs_on(stage, here)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
    await runs_on(stage, elsewhere(stage, here))
