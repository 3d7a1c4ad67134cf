"""Pods that nodes refuse run elsewhere, and nothing is made without end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from kube_in_process.options import ClusterOptions, Preset, Timings
from structlog.testing import capture_logs

from claimctl.kube.errors import ApiError, KubeError
from claimctl.wire.coordination import Event, ObjectReference, micro_time
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import DEPLOYMENTS, EVENTS, PODS, RESOURCECLAIMS
from claimctl.wire.seams import Clock
from claimctl.wire.traces import AVOID_TAINT
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.loop import Loop
from claimctl_reschedule.run.waking import PodSigns
from claimctl_reschedule.shapes.records import RescheduleRecordStatus
from claimctl_reschedule_tests.e2e.rescheduling import is_held, reasons, runner, taints, workload
from claimctl_reschedule_tests.e2e.unplaceable import (
    REASON,
    attractive,
    braked,
    ever_refused,
    install_policy,
    is_live,
    looping,
    pods,
    refuse,
    refused,
    refused_on,
    remove_policy,
    runs,
    status,
    unplaceable,
)
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import NAMESPACE, Stage, embedded_stage
from tests.e2e.site import PEOPLE
from tests.e2e.uninstalling import Remover

TWO = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=2)
SLOW = replace(TWO, timings=Timings(pod_start=1.0))
OLD = replace(SLOW, kubernetes_version=(1, 34))
BUDGET = 5


@dataclass
class Shifted:
    """A clock whose wall time is wrong."""

    inner: Clock
    by: timedelta

    def now(self) -> datetime:
        return self.inner.now() + self.by

    def monotonic(self) -> float:
        return self.inner.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self.inner.sleep(seconds)


BRAKE = unplaceable(brake=True, budget={"refusals": BUDGET, "windowSeconds": 600})


async def _is_forgotten(stage: Stage) -> bool:
    return (await _of(stage)).avoidances == ()


async def _leads(loop: Loop, *, leading: bool = True) -> bool:
    return loop.election.leading == leading


async def _of(stage: Stage, policy: str = BRAKE) -> RescheduleRecordStatus:
    return await status(runner(stage, policy))


async def test_without_records_refused_pods_still_wake_the_loop() -> None:
    async with embedded_stage(SLOW) as stage:
        await install_policy(stage)
        crd = "reschedulerecords.claimctl.io"
        stage.embedded.admin.delete("customresourcedefinitions", "", crd)
        async with looping(stage, unplaceable(), interval=600.0) as loop:
            await stage.until(lambda: _leads(loop), "it leads")
            await refuse(stage)
            await stage.create(DEPLOYMENTS, workload("web", 1))
            await stage.clock.sleep(60)
            with capture_logs() as logs:
                await stage.clock.sleep(60)
            assert loop.election.leading
            assert "run ended" in {each["event"] for each in logs}


async def test_a_loop_whose_watch_of_refused_pods_ends_does_not_go_on_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fails(_: PodSigns) -> None:
        await asyncio.sleep(40)
        raise ValueError("a mistake in the plan for a refused pod")

    monkeypatch.setattr(PodSigns, "run", fails)
    async with embedded_stage(SLOW) as stage, looping(stage, unplaceable()) as loop:
        await stage.until(lambda: _leads(loop), "it leads")
        await stage.until(lambda: _leads(loop, leading=False), "it has ended", within=60)


@pytest.mark.parametrize("replicas", [1, 2])
async def test_all_nodes_refuse_for_an_hour_and_then_no_more(replicas: int) -> None:
    """Scenario 23: the brake. Upstream makes 1,800 pods a minute."""
    async with embedded_stage(SLOW) as stage:
        await install_policy(stage)
        async with looping(stage, BRAKE):
            await refuse(stage)
            await stage.create(DEPLOYMENTS, workload("web", replicas))
            await stage.clock.sleep(3600)
            (entry,) = (await _of(stage)).avoidances
            assert entry.brake is not None
            probes = entry.brake.probes
            assert (entry.braked, entry.nodes, probes > 10) == (True, (), True)
            # one of each further replica may be on its way when the brake acts
            assert len(ever_refused(stage)) <= BUDGET + probes + replicas - 1
            assert len(await refused(stage)) <= 3
            assert len(await braked(stage)) == replicas
            await refuse(stage, None)
            await stage.until(lambda: runs(stage, count=replicas), "all run", within=340)
            await stage.until(lambda: _is_forgotten(stage), "the brake is forgotten")
            assert await braked(stage) == []


async def test_without_the_strategy_pods_are_made_without_end() -> None:
    """What the brake prevents: the fault is real in the embedded cluster."""
    async with embedded_stage(SLOW) as stage:
        await refuse(stage)
        await stage.create(DEPLOYMENTS, workload("web", 1))
        await stage.clock.sleep(120)
        assert len(ever_refused(stage)) > 60


# What is left behind

WRITES = 5
"""Of the run below: record, release of a pod, two evictions of old pods, and one never reached."""


async def _braked_scene(stage: Stage) -> None:
    """A braked owner with two waiting pods and five refused ones; no process runs."""
    await install_policy(stage)
    await refuse(stage)
    await stage.create(DEPLOYMENTS, workload("web", 2))
    keeping = unplaceable(brake=True, keepRefused=None)
    async with looping(stage, keeping):
        await stage.until(lambda: _count(stage, 2), "two pods wait")
    await stage.clock.sleep(30)


async def _count(stage: Stage, count: int) -> bool:
    return len(await braked(stage)) == count


@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "lost"])
@pytest.mark.parametrize("write", range(1, WRITES + 1))
async def test_a_process_that_is_killed_at_any_write_leaves_nothing_behind(
    write: int, delivered: bool
) -> None:
    async with embedded_stage(SLOW) as stage:
        await _braked_scene(stage)
        before = len(ever_refused(stage))
        killed = DyingTransport(
            stage.site.connection(PEOPLE), write, delivered=delivered, concerned=lambda path: True
        )
        killed.arm()
        with suppress(KubeError):
            await runner(stage, BRAKE, killed).run()
        # a successor brakes on, and lets one pod through at a time
        async with looping(stage, BRAKE):
            await stage.clock.sleep(300)
            entry = (await _of(stage)).avoidances[0]
            assert entry.brake is not None
            assert len(ever_refused(stage)) - before <= entry.brake.probes
            await refuse(stage, None)
            await stage.until(lambda: runs(stage, count=2), "all run", within=340)
            await stage.until(lambda: _is_forgotten(stage), "nothing is left")
        assert await braked(stage) == []


async def test_an_uninstall_lets_braked_pods_go() -> None:
    async with embedded_stage(SLOW) as stage:
        await _braked_scene(stage)
        command = Remover(stage, namespaces=())
        found = {each.reason for each in (await command.look()).left}
        assert {"KeepsPodsOff", "Braked"} <= found
        await refuse(stage, None)
        assert (await command.run()).left == ()
        assert await braked(stage) == []
        await stage.until(lambda: runs(stage, count=2), "all run")
        assert await _is_forgotten(stage)


async def test_the_taint_of_an_avoidance_goes_with_an_uninstall_and_with_its_time() -> None:
    async with embedded_stage(OLD) as stage:
        bad, _ = stage.site.nodes
        await attractive(stage)
        async with looping(stage, unplaceable()):
            await stage.clock.sleep(2)
            await stage.create(DEPLOYMENTS, refused_on(bad))
            await stage.until(lambda: runs(stage), "it runs")
            assert AVOID_TAINT in {key for key, _ in await taints(stage)}
            await stage.clock.sleep(700)
            assert await taints(stage) == []
        await stage.delete(PODS, (await _newest(stage)))
        async with looping(stage, unplaceable()):
            await stage.clock.sleep(10)
        await runner(stage, unplaceable()).sweep(everything=True)
        assert await taints(stage) == []
        assert await _is_forgotten(stage)


async def _newest(stage: Stage) -> str:
    return next(each.metadata.name for each in await pods(stage) if is_live(each))


# Faults


async def test_a_policy_object_that_is_removed_ends_the_brake() -> None:
    """Scenario 28: braked pods go on, and the run says why."""
    async with embedded_stage(SLOW) as stage:
        await _braked_scene(stage)
        await remove_policy(stage, "MutatingAdmissionPolicyBinding")
        await refuse(stage, None)
        report = await runner(stage, BRAKE).run()
        assert ["not installed" in each.why for each in report.plan.avoidances] == [True]
        await stage.until(lambda: runs(stage, count=2), "all run")
        assert await braked(stage) == []


async def test_an_api_server_that_restarts_changes_nothing() -> None:
    async with embedded_stage(SLOW) as stage:
        await install_policy(stage)
        bad, good = stage.site.nodes
        await attractive(stage)
        async with looping(stage, unplaceable()):
            await stage.clock.sleep(2)
            await stage.site.restart_api_server()
            await stage.create(DEPLOYMENTS, refused_on(bad))
            await stage.until(lambda: runs(stage, good), "it runs elsewhere", within=120)


async def test_the_record_is_read_anew_so_that_a_second_process_adds_nothing() -> None:
    async with embedded_stage(SLOW) as stage:
        await install_policy(stage)
        await refuse(stage)
        await stage.create(DEPLOYMENTS, workload("web", 1))
        two = [runner(stage, BRAKE) for _ in range(2)]
        for _ in range(30):
            await asyncio.gather(*(each.run() for each in two))
            await stage.clock.sleep(1)
        (entry,) = (await _of(stage)).avoidances
        assert entry.brake is not None
        # a probe that both let through is one pod
        assert len(ever_refused(stage)) <= BUDGET + entry.brake.probes + 1


async def test_a_run_that_was_overtaken_writes_no_avoidance() -> None:
    """A pod was refused while the run made its plan: what was done about it stays."""
    async with embedded_stage(SLOW) as stage:
        await install_policy(stage)
        await refuse(stage, REASON, stage.site.nodes[0])
        await attractive(stage)
        process = runner(stage, unplaceable())
        await process.run()
        await stage.create(DEPLOYMENTS, workload("web", 1))
        await stage.until(lambda: _are_refused(stage, 1), "one is refused")
        old = await process.plan()
        await stage.until(lambda: _are_refused(stage, 2), "two are refused")
        await process.react([each for each in await pods(stage) if each.status.reason])
        (entry,) = (await _of(stage)).avoidances
        assert entry.nodes == (stage.site.nodes[0],)
        await process.execute(old, overtaken=lambda: True)
        assert (await _of(stage)).avoidances == (entry,)


async def _are_refused(stage: Stage, count: int) -> bool:
    return len(await refused(stage)) >= count


@pytest.mark.parametrize("days", [-400, 400])
async def test_a_clock_that_jumps_leaves_no_pod_waiting(days: int) -> None:
    async with embedded_stage(SLOW) as stage:
        await _braked_scene(stage)
        await refuse(stage, None)
        process = runner(stage, BRAKE)
        process.clock = Shifted(stage.clock, timedelta(days=days))
        for _ in range(4):
            await process.run()
            await stage.clock.sleep(5)
        assert await runs(stage, count=2)
        assert await braked(stage) == []


# stuck pods

DRIVER = "kube-in-process/prepare-fails"


async def _fails(stage: Stage, node: str, error: str | None) -> None:
    await stage.site.patch_node(node, {"metadata": {"annotations": {DRIVER: error}}})


async def _stuck(stage: Stage, *, held: bool) -> str:
    """A pod with a claim is bound to a node whose driver is away; its node."""
    await stage.started()
    await stage.clock.sleep(2)  # the controller knows the claims that are made from now on
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = workload("web", 1, claim="slice")
    if held:
        body["metadata"]["annotations"] = {"claimctl.io/reserve": "slice"}
    for node in stage.site.nodes:
        await _fails(stage, node, "the driver is away")
    await stage.create(DEPLOYMENTS, body)
    await stage.until(lambda: _is_bound(stage), "the pod has a node")
    if held:
        await stage.until(lambda: is_held(stage), "the claim is held")
    (pod,) = await pods(stage)
    for node in stage.site.nodes:
        if node != pod.spec.node_name:
            await _fails(stage, node, None)
    return pod.spec.node_name


async def _is_bound(stage: Stage) -> bool:
    return any(each.spec.node_name for each in await pods(stage))


def _evicted(stage: Stage) -> int:
    """How many pods of the workload were ever deleted."""
    gone = {
        each.object()["metadata"]["uid"]
        for each in stage.embedded.history()
        if each.plural == "pods" and each.object()["metadata"].get("deletionTimestamp")
    }
    return len(gone)


STUCK = unplaceable(stuckSeconds=20)


@pytest.mark.parametrize("held", [False, True])
async def test_a_pod_whose_devices_cannot_be_prepared_runs_elsewhere(held: bool) -> None:
    """Scenario 25: the controller gives a held claim up; the pod is evicted once."""
    async with embedded_stage(SLOW) as stage:
        await install_policy(stage)
        bad = await _stuck(stage, held=held)
        async with looping(stage, STUCK, interval=5.0):
            await stage.until(lambda: runs(stage), "it runs", within=120)
            assert not await runs(stage, bad)
            await stage.clock.sleep(120)
        assert _evicted(stage) == 1
        assert all(
            "claimctl.io/reallocate" not in (each.metadata.annotations or {})
            for each in await stage.reservations()
        )


@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "lost"])
@pytest.mark.parametrize("write", range(1, 7))
async def test_a_run_for_a_stuck_pod_that_is_killed_evicts_nothing_in_vain(
    write: int, delivered: bool
) -> None:
    """Its writes: record made, avoidance, record tried, request for the claim, eviction, memory."""
    async with embedded_stage(SLOW) as stage:
        await install_policy(stage)
        bad = await _stuck(stage, held=True)
        await stage.clock.sleep(25)
        killed = DyingTransport(
            stage.site.connection(PEOPLE), write, delivered=delivered, concerned=lambda path: True
        )
        killed.arm()
        with suppress(KubeError):
            await runner(stage, STUCK, killed).run()
        assert killed.dead.is_set()
        async with looping(stage, STUCK, interval=20.0):
            await stage.until(lambda: runs(stage), "it runs", within=180)
            await stage.clock.sleep(60)
        assert not await runs(stage, bad)
        assert _evicted(stage) == 1
        left = [each.metadata.annotations or {} for each in await stage.reservations()]
        assert not any("reallocate" in key for each in left for key in each)


async def test_where_every_driver_fails_a_pod_is_not_evicted_again_and_again() -> None:
    async with embedded_stage(SLOW) as stage:
        await install_policy(stage)
        await _stuck(stage, held=True)
        for node in stage.site.nodes:
            await _fails(stage, node, "the driver is away")
        async with looping(stage, STUCK, interval=60.0):
            await stage.clock.sleep(1800)
        # one eviction for each node, at most
        assert _evicted(stage) <= len(stage.site.nodes)


async def test_beside_a_pod_that_runs_a_stuck_pod_is_evicted_once() -> None:
    """Scenario 26."""
    async with embedded_stage(SLOW) as stage:
        await install_policy(stage)
        await stage.started()
        await stage.create(RESOURCECLAIMS, manifests.claim())
        body = workload("web", 1, claim="slice")
        body["metadata"]["annotations"] = {"claimctl.io/reserve": "slice"}
        await stage.create(DEPLOYMENTS, body)
        await stage.until(lambda: runs(stage), "it runs")
        (first,) = await pods(stage)
        await _fails(stage, first.spec.node_name, "the driver is away")
        await stage.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 2}})
        async with looping(stage, STUCK, interval=5.0):
            await stage.clock.sleep(600)
        assert _evicted(stage) == 1
        plan = await runner(stage, STUCK).plan()
        assert set(reasons(plan).values()) == {Ground.STUCK_AGAIN}
        assert await runs(stage)


# Events that others than kubelets wrote


async def _say_unprepared(stage: Stage, place: str, **regarding: str) -> None:
    """Create the Event by which a kubelet says that it cannot prepare a pod's devices."""
    now = micro_time(stage.clock.now())
    about = ObjectReference(kind="Pod", api_version="v1", **regarding)
    event = Event(
        metadata=ObjectMeta(name=f"said-{uuid4()}", namespace=place),
        event_time=now,
        reporting_controller="kubelet",
        reporting_instance="node-0",
        action="Preparing",
        reason="FailedPrepareDynamicResources",
        regarding=about,
        note="the driver is away",
        type="Warning",
    )
    with suppress(ApiError):  # API servers refuse an Event about another namespace
        await stage.client.create(EVENTS, event, place)


async def test_an_event_in_another_namespace_evicts_nobody() -> None:
    """A user of one namespace writes Events about a pod of another, which takes long to start."""
    async with embedded_stage(replace(TWO, timings=Timings(pod_start=3600.0))) as stage:
        await install_policy(stage)
        await stage.started()
        await stage.create(RESOURCECLAIMS, manifests.claim())
        await stage.create(DEPLOYMENTS, workload("web", 1, claim="slice"))
        await stage.until(lambda: _is_bound(stage), "the pod has a node")
        await stage.clock.sleep(60)
        (pod,) = await pods(stage)
        name, uid = pod.metadata.name, pod.metadata.uid
        stage.embedded.admin.create("namespaces", {"metadata": {"name": "evil"}})
        for about in ("evil", NAMESPACE):
            await _say_unprepared(stage, "evil", namespace=about, name="whatever", uid=uid)
            await _say_unprepared(stage, "evil", namespace=about, name=name, uid=uid)
        await _say_unprepared(stage, NAMESPACE, namespace=NAMESPACE, name="whatever", uid=uid)
        await _say_unprepared(stage, NAMESPACE, namespace=NAMESPACE, name=name, uid="whatever")
        assert (await runner(stage, STUCK).run()).evicted == 0
        assert _evicted(stage) == 0
        # a kubelet, or whoever may write Events beside the pod
        await _say_unprepared(stage, NAMESPACE, namespace=NAMESPACE, name=name, uid=uid)
        assert (await runner(stage, STUCK).run()).evicted == 1
