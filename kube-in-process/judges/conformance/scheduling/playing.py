"""Plays cases on an embedded cluster, and on real servers to record them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.real.client import DocumentClient
from kube_in_process.seams import Clock

from judges.conformance.scheduling.stage import SPACE, Case, CaseStage

FOLDER = Path(__file__).parent


def recording_of(version: str) -> Path:
    return FOLDER / f"v{version}.json"


def recorded(version: str) -> dict[str, Any]:
    """By case and rest: what real servers of a version showed."""
    recording: dict[str, Any] = json.loads(recording_of(version).read_text())
    return recording


async def play_embedded(case: Case, version: tuple[int, int], clock: Clock) -> dict[str, Any]:
    """Play a case on an embedded cluster without kubelets, on the virtual clock."""
    options = ClusterOptions(Preset.PLAIN, kubernetes_version=version, nodes=0)
    cluster = Cluster(options, clock)
    cluster.pause("kubelet")
    await cluster.start()
    try:
        client = DocumentClient(cluster.transport(), "people")
        await make_namespace(client)
        stage = CaseStage(client, look=1.0)
        await case(stage)
        if cluster.failures:
            raise cluster.failures[0]
        return stage.rests
    finally:
        await cluster.stop()


async def make_namespace(client: DocumentClient) -> None:
    meta = {"name": SPACE}
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
