"""``claimctl controller`` as a process, over HTTP, in real time."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from kube_in_process.cluster import Cluster
from kube_in_process.http.listener import serve
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    LEASES,
    RESOURCECLAIMTEMPLATES,
)
from tests.e2e import manifests
from tests.e2e.commands import claimctl, command_line
from tests.e2e.harness import NATIVE, Stage, install
from tests.e2e.site import EmbeddedSite

QUICK = ("--settle-seconds", "0.3", "--bind-address", "127.0.0.1:0", "--log-format", "json")


@asynccontextmanager
async def served(directory: Path, *, crds: bool = True) -> AsyncIterator[tuple[Stage, Path]]:
    """An embedded cluster behind HTTP, an administrator's stage and the kubeconfig for it."""
    cluster = Cluster(NATIVE, LoopClock())
    await cluster.start()
    server = await serve(cluster.handler)
    kubeconfig = directory / "kubeconfig"
    write_kubeconfig(kubeconfig, Access(server.url))
    client = Client(cluster.transport(), cluster.clock, field_manager="kubectl")
    try:
        await install(client, crds=crds)
        site = EmbeddedSite(cluster)
        yield Stage(client, cluster.clock, cluster.transport, site, cluster), kubeconfig
    finally:
        await server.close()
        await cluster.stop()


@asynccontextmanager
async def controller(kubeconfig: Path, *flags: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A running controller; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *command_line("controller", "--kubeconfig", str(kubeconfig), *QUICK, *flags),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def leads(stage: Stage, before: str = "") -> None:
    """Wait until a controller holds the Lease, another one than ``before``."""

    async def holds() -> bool:
        lease = await stage.client.get(LEASES, "claimctl-controller", "claimctl-system")
        return (lease.spec.holder_identity or before) != before

    await stage.until(holds, "a controller leads")


async def held(stage: Stage) -> None:
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=3))
    body = manifests.reservation(
        resourceClaimTemplateName="template",
        idleTimeoutSeconds=0,
        forceDeletedPodGraceSeconds=0,
    )
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_condition("Reserved", "True", "Reserved")


@pytest.mark.real_time(120)
async def test_it_holds_releases_answers_probes_and_ends_well_on_sigterm(tmp_path: Path) -> None:
    async with served(tmp_path) as (stage, kubeconfig), controller(kubeconfig) as process:
        await leads(stage)
        await held(stage)
        assert await stage.references() == ("deployments/train",)
        url = await health_url(process)
        async with aiohttp.ClientSession() as session:
            assert await status_of(session, f"{url}/readyz") == 200
            assert await status_of(session, f"{url}/healthz") == 200
            async with session.get(f"{url}/metrics") as answer:
                metrics = await answer.text()
        assert 'claimctl_claims{state="reserved"} 1.0' in metrics
        assert "claimctl_leader 1.0" in metrics
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
        await stage.until_released()
        process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        lease = await stage.client.get(LEASES, "claimctl-controller", "claimctl-system")
        assert not lease.spec.holder_identity


async def health_url(process: asyncio.subprocess.Process) -> str:
    import json

    assert process.stderr is not None
    async for line in process.stderr:
        told = json.loads(line)
        if told["message"] == "serving health and metrics":
            return str(told["url"])
    raise AssertionError("it never served health")


async def status_of(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url) as answer:
        return answer.status


@pytest.mark.real_time(120)
async def test_without_our_definitions_it_says_how_to_install_them(tmp_path: Path) -> None:
    async with served(tmp_path, crds=False) as (_, kubeconfig):
        answer = await claimctl("controller", "--kubeconfig", str(kubeconfig), *QUICK)
    assert answer.code == 1
    assert answer.err.splitlines()[-1] == (
        "error: the CustomResourceDefinition claimreservations.claimctl.io is missing: "
        "claimctl install --component crds"
    )


@pytest.mark.real_time(120)
async def test_without_a_namespace_for_its_lease_it_says_what_to_do(tmp_path: Path) -> None:
    flags = ("--kubeconfig", str(tmp_path / "kubeconfig"), *QUICK)
    async with served(tmp_path):
        answer = await claimctl("controller", *flags, "--lease-namespace", "nowhere")
    assert (answer.code, answer.err.splitlines()[-1]) == (
        1,
        "error: there is no namespace nowhere for the Lease: create it, or choose another one",
    )


@pytest.mark.real_time(120)
@pytest.mark.parametrize(
    ("flags", "code", "text"),
    [
        (("--kubeconfig", "/nosuch"), 2, "/nosuch"),
        (("--workers", "0"), 2, "--workers: input should be greater than or equal to 1"),
        (
            ("--reservation-mode", "esperanto"),
            2,
            "--reservation-mode: input should be 'auto', 'native', 'podgroup' or 'hold'",
        ),
        (("--settle-seconds", "-1"), 2, "--settle-seconds"),
        (("--bind-address", "here"), 2, "--bind-address: 'here' is no address to listen on"),
    ],
)
async def test_bad_input_is_one_line(
    tmp_path: Path, flags: tuple[str, ...], code: int, text: str
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, Access("http://127.0.0.1:1"))
    answer = await claimctl("controller", "--kubeconfig", str(kubeconfig), *QUICK, *flags)
    assert (answer.code, answer.out) == (code, "")
    assert len(answer.err.splitlines()) == 1
    assert text in answer.err


@pytest.mark.real_time(120)
async def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, Access("http://127.0.0.1:1"))
    answer = await claimctl("controller", "--kubeconfig", str(kubeconfig), *QUICK)
    assert answer.code == 1
    assert answer.err.splitlines()[-1].startswith("error: GET /")
    assert "Traceback" not in answer.err
