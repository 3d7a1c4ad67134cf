"""The client that a command gets."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kube_in_process.http.listener import serve
from kube_in_process.options import Preset
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig

from claimctl.cli import access
from claimctl.cli.session import connected
from claimctl.wire.resources import PODGROUPS, RESOURCECLAIMS, Resource
from tests.support.counting_server import server

PATIENT = access.Access(request_timeout=0.0, first_timeout=30.0)


@pytest.mark.real_time(60)
@pytest.mark.parametrize("flags", [access.Access(), PATIENT], ids=["usual", "patient"])
@pytest.mark.parametrize(
    ("dialect", "minor", "resource", "version"),
    [
        (Preset.PLAIN, 32, RESOURCECLAIMS, "v1beta1"),
        (Preset.PLAIN, 33, RESOURCECLAIMS, "v1beta2"),
        (Preset.PLAIN, 34, RESOURCECLAIMS, "v1"),
        (Preset.POD_GROUPS, 36, PODGROUPS, "v1alpha2"),
    ],
)
async def test_it_speaks_the_versions_that_the_cluster_serves(
    dialect: Preset,
    minor: int,
    resource: Resource[Any],
    version: str,
    flags: access.Access,
    tmp_path: Path,
) -> None:
    made = server(dialect, kubernetes_version=(1, minor))
    async with AsyncExitStack() as stack:
        handle = await serve(made.handler)
        stack.push_async_callback(handle.close)
        write_kubeconfig(tmp_path / "config", Access(handle.url))
        told = replace(flags, kubeconfig=str(tmp_path / "config"))
        session = await stack.enter_async_context(connected(told))
        assert session.client.served(resource).version == version
        await session.client.list(resource)
