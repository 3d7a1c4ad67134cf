"""The embedded servers that recordings are played against."""

from __future__ import annotations

from typing import Any

from kube_in_process.api_server import api_server
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.http.handler import ADMINISTRATOR
from kube_in_process.options import Authorization, ClusterOptions, Preset
from kube_in_process.verbs.reading import Target

from judges.conformance.replay import Recording, Replay, ReplayStage, StepResult
from judges.definitions import definitions

WITH_COMPONENTS = (
    "09-eviction",
    "11b-binding-permission-v1.34",
    "12-podgroups",
    "13-workloads",
    "14-namespaces",
)
"""Recorded with the controllers and the scheduler at work, and no kubelet."""
_PAUSE_SECONDS = 0.02


def _options(recording: Recording) -> ClusterOptions:
    major, minor = recording.server.removeprefix("v").split(".")[:2]
    version = (int(major), int(minor))
    dialect = Preset.POD_GROUPS if version >= (1, 36) else Preset.PLAIN
    return ClusterOptions(
        preset=dialect,
        kubernetes_version=version,
        authorization=Authorization.RBAC,
        # the recorded servers ran without that plugin
        service_accounts=False,
    )


async def play(recording: Recording) -> list[StepResult]:
    """One run, against an API server alone unless controllers were at work in the recording."""
    if recording.name in WITH_COMPONENTS:
        return await _play_in_cluster(recording)
    handler = api_server(_options(recording), LoopClock(EPOCH))
    default = {"metadata": {"name": "default"}}
    namespaces = Target(handler.api.kinds.named("namespaces"), "")
    handler.api.create(ADMINISTRATOR, namespaces, default)
    kind = handler.api.kinds.named("customresourcedefinitions")
    for body in definitions() if recording.definitions else ():
        _as_recorded(body)
        handler.api.create(ADMINISTRATOR, Target(kind, ""), body)
    stage = ReplayStage(handler, handler.api.store.compact)
    return await Replay(recording, stage).run()


def _as_recorded(definition: dict[str, Any]) -> None:
    """Give the definition the default that it had when the answers were recorded."""
    for version in definition["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"].get("spec", {})
        grace = spec.get("properties", {}).get("forceDeletedPodGraceSeconds")
        if grace is not None:
            grace["default"] = 300


async def _play_in_cluster(recording: Recording) -> list[StepResult]:
    cluster = Cluster(_options(recording), LoopClock(EPOCH))
    cluster.pause("kubelet")
    await cluster.start()
    try:
        stage = ReplayStage(cluster.handler, cluster.store.compact)
        return await Replay(recording, stage, pause=_PAUSE_SECONDS).run()
    finally:
        await cluster.stop()
