"""The stand-in for kubelets on an API server that is away when there is something to tell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kube_in_process.clock import LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.components.kubelet.kubelet import RUN_SECONDS
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.real.servers.pod_worker import Host, PodWorker
from kube_in_process.storage.requests import DeleteOptions, Fault, FaultPoint
from kube_in_process.virtual import run

POD: dict[str, Any] = {
    "metadata": {"name": "train-0", "namespace": "team"},
    "spec": {
        "nodeName": "node-0",
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "train"}],
    },
}

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class AwayServer:
    """Loses the next status that a pod is given."""

    armed = True

    def __call__(self, point: FaultPoint) -> Fault | None:
        if self.armed and (point.plural, point.subresource) == ("pods", "status"):
            self.armed = False
            return Fault(drop=True)
        return None


def play(story: Callable[[Cluster, Kubelets, AwayServer], Any]) -> list[str]:
    """A story of one pod; gives the phases that the pod went through."""

    async def scenario() -> list[str]:
        cluster = Cluster(
            ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=0),
            LoopClock(NOW),
        )
        await cluster.start()
        cluster.pause("kubelet")
        kubelets = Kubelets(cluster.transport(), Fleet((1, 36), count=1))
        joined = asyncio.Event()
        task = asyncio.create_task(kubelets.run(joined))
        away = AwayServer()
        try:
            await joined.wait()
            cluster.admin.create("namespaces", {"metadata": {"name": "team"}})
            cluster.handler.fault = away
            cluster.admin.create("pods", POD)
            await asyncio.sleep(5.0)
            await story(cluster, kubelets, away)
            await asyncio.sleep(5.0)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await cluster.stop()
        pods = [revision.object() for revision in cluster.history() if revision.plural == "pods"]
        phases = [pod["status"]["phase"] for pod in pods]
        return [*dict.fromkeys(phases)]

    return run(scenario(), limit=120.0)


async def _nothing(cluster: Cluster, kubelets: Kubelets, away: AwayServer) -> None:
    assert not away.armed


def test_that_a_pod_runs_is_told_again_when_nobody_heard_it() -> None:
    assert play(_nothing) == ["Pending", "Running"]


async def _boot(cluster: Cluster, kubelets: Kubelets, away: AwayServer) -> None:
    away.armed = True
    await kubelets.recover("node-0", rebooted=True)


def test_a_deletion_that_is_known_before_the_answer_to_a_report_is_not_forgotten() -> None:
    there = {"metadata": {"name": "train-0", "namespace": "team", "uid": "u"}, "spec": {}}
    going = {**there, "metadata": {**there["metadata"], "deletionTimestamp": "now"}}

    class Client:
        async def patch_status(self, *_: Any) -> dict[str, Any]:
            worker.take(going)
            return there

    host = SimpleNamespace(client=Client(), slots=asyncio.Semaphore(1))
    worker = PodWorker(there, cast(Host, host))
    run(worker.report({"phase": "Running"}), limit=1)
    assert worker.leaving


def test_that_a_pod_failed_with_its_node_is_told_again_when_nobody_heard_it() -> None:
    assert play(_boot) == ["Pending", "Running", "Failed"]


async def _delete(cluster: Cluster, kubelets: Kubelets, away: AwayServer) -> None:
    away.armed = True
    cluster.admin.delete("pods", "team", "train-0", DeleteOptions())


def test_a_pod_gets_its_last_phase_before_it_goes_although_nobody_heard_it_at_first() -> None:
    assert play(_delete) == ["Pending", "Running", "Failed"]


def test_nothing_runs_any_more_when_somebody_can_hear_that_a_pod_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who hears it may take the claim's devices before the answer is back."""
    told: list[tuple[str, bool]] = []
    report = PodWorker.report

    async def hear(worker: PodWorker, status: Any) -> None:
        told.append((status["phase"], worker.runs))
        await report(worker, status)

    monkeypatch.setattr(PodWorker, "report", hear)
    monkeypatch.setitem(POD["metadata"], "annotations", {RUN_SECONDS: "1"})
    assert play(_nothing) == ["Pending", "Running", "Succeeded"]
    assert [runs for phase, runs in told if phase == "Succeeded"] == [False]


def test_a_pod_that_was_never_started_gets_a_last_phase_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Since 1.27 a kubelet lets no pod go without one."""
    claim = {"name": "gpu", "resourceClaimName": "missing"}
    monkeypatch.setitem(POD["spec"], "resourceClaims", [claim])
    assert play(_delete) == ["Pending", "Failed"]


SIZED: dict[str, Any] = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "40"}}}


def _sized(name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "team"}
    return {"metadata": meta, "spec": {"nodeName": "node-0", "containers": [SIZED]}}


def _resize(cluster: Cluster, name: str, cpu: str) -> None:
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
    cluster.admin.patch("pods", "team", name, patch, "resize", kind="strategic")


def _cpu(cluster: Cluster, name: str) -> tuple[str, str, str]:
    """What is allocated, what is actual, and why a resize waits."""
    status = cluster.admin.get("pods", "team", name)["status"]
    main = status["containerStatuses"][0]
    waits = [
        condition for condition in status["conditions"] if condition["type"] == "PodResizePending"
    ]
    reason = waits[0]["reason"] if waits else ""
    return main["allocatedResources"]["cpu"], main["resources"]["requests"]["cpu"], reason


async def _resizes(cluster: Cluster, kubelets: Kubelets, away: AwayServer) -> None:
    cluster.admin.create("pods", _sized("a"))
    await asyncio.sleep(1)
    _resize(cluster, "a", "20")
    await asyncio.sleep(1)
    assert _cpu(cluster, "a") == ("20", "20", "")
    cluster.admin.create("pods", _sized("b"))
    await asyncio.sleep(1)
    _resize(cluster, "b", "50")
    await asyncio.sleep(1)
    assert _cpu(cluster, "b") == ("40", "40", "Deferred")
    _resize(cluster, "a", "10")
    await asyncio.sleep(3)
    assert _cpu(cluster, "b") == ("50", "50", "")
    _resize(cluster, "b", "60")
    await asyncio.sleep(1)
    assert _cpu(cluster, "b") == ("50", "50", "Deferred")
    cluster.admin.delete("pods", "team", "a")
    await asyncio.sleep(3)
    assert _cpu(cluster, "b") == ("60", "60", "")


def test_pods_are_resized_when_there_is_room() -> None:
    play(_resizes)
