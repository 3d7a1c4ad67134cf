"""Scenarios on a cluster that is not the embedded one, in real time; it is left as it was found."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from claimctl.controller.dialect import DialectProbe
from claimctl.embedded.options import ClusterOptions
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.connection import load_connection
from claimctl.kube.errors import ApiError, NotFound
from claimctl.kube.transport import HttpTransport
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import DOWNGRADE_PLAN_NAME
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DOWNGRADEPLANS,
    PODGROUPS,
    PODS,
    RESOURCECLAIMS,
    Resource,
)
from tests.e2e.harness import NAMESPACE, NAMESPACES, Scenario, Stage, install
from tests.e2e.remote import standing_in

STAND_INS_VARIABLE = "CLAIMCTL_E2E_STAND_INS"


async def on_real_cluster(scenario: Scenario, kubeconfig: Path, options: ClusterOptions) -> None:
    """In real time; what the cluster speaks decides which scenarios make sense."""
    clock = LoopClock()
    parts = tuple(filter(None, os.environ.get(STAND_INS_VARIABLE, "").split(",")))
    async with HttpTransport(load_connection(str(kubeconfig))) as transport:
        client = Client(transport, clock, field_manager="kubectl")
        stage = Stage(client=client, clock=clock, connect=lambda: transport, cluster=None)
        async with standing_in(transport, kubeconfig, options, parts):
            await install(client)
            await _check_dialect(client, options)
            try:
                await stage.play(scenario)
            finally:
                await clear(stage)


async def _check_dialect(client: Client, options: ClusterOptions) -> None:
    found = await DialectProbe(client, namespace=NAMESPACE).detect()
    if found.dialect != options.dialect:
        pytest.skip(f"the cluster speaks {found.dialect}")


async def clear(stage: Stage) -> None:
    """Take away what a scenario left, so that the next finds a cluster like new."""
    for namespace in (NAMESPACE, "claimctl-system"):
        for one in (await stage.client.list(CLAIMRESERVATIONS, namespace)).items:
            await _remove(stage.client, CLAIMRESERVATIONS, one.metadata)
        for group in await _groups(stage.client, namespace):
            await _remove(stage.client, PODGROUPS, group)
        with suppress(NotFound):
            await stage.client.delete(NAMESPACES, namespace)
    with suppress(NotFound):
        await stage.client.delete(DOWNGRADEPLANS, DOWNGRADE_PLAN_NAME)
    for namespace in (NAMESPACE, "claimctl-system"):
        await stage.until(partial(_no_namespace, stage.client, namespace), f"{namespace} is gone")


async def _groups(client: Client, namespace: str) -> list[ObjectMeta]:
    try:
        return [group.metadata for group in (await client.list(PODGROUPS, namespace)).items]
    except NotFound:
        return []


async def _remove(client: Client, resource: Resource[Any], meta: ObjectMeta) -> None:
    """Without the finalizers that a controller would have taken off."""
    with suppress(NotFound):
        patch = {"metadata": {"finalizers": None}}
        await client.merge_patch(
            resource,
            meta.name,
            patch,
            meta.namespace,
            resource_version=meta.resource_version,
        )
        await client.delete(resource, meta.name, meta.namespace)


async def _no_namespace(client: Client, name: str) -> bool:
    """Whether a namespace is gone; claims that a controller would have released are let go."""
    with suppress(ApiError):
        if not (await client.list(PODS, name)).items:
            for claim in (await client.list(RESOURCECLAIMS, name)).items:
                await _let_go(client, claim.metadata)
    try:
        await client.get(NAMESPACES, name)
    except NotFound:
        return True
    return False


async def _let_go(client: Client, meta: ObjectMeta) -> None:
    written = await client.merge_patch(
        RESOURCECLAIMS,
        meta.name,
        {"status": {"allocation": None, "reservedFor": None}},
        meta.namespace,
        resource_version=meta.resource_version,
        subresource="status",
    )
    await _remove(client, RESOURCECLAIMS, written.metadata)
