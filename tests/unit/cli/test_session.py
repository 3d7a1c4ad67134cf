"""The client that a command gets."""

from __future__ import annotations

import signal
import subprocess
import sys
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


COMMAND = """
import asyncio, os, signal
from contextlib import asynccontextmanager
from claimctl.cli import session
from claimctl.cli.access import Access
from claimctl.cli.errors import guarded

@asynccontextmanager
async def connected(access, namespace):
    yield None

async def work(_):
    with session.if_interrupted("what is done stays"):
        os.kill(os.getpid(), signal.SIGNAL)
        await asyncio.Event().wait()

async def work_that_does_not_end(_):
    try:
        await work(_)
    except asyncio.CancelledError:
        os.kill(os.getpid(), signal.SIGNAL)
        await asyncio.Event().wait()

session.connected = connected
raise SystemExit(guarded(lambda: session.in_session(Access(), WORK)))
"""


@pytest.mark.parametrize(
    ("sent", "work", "code"),
    [
        (signal.SIGINT, "work", 130),
        (signal.SIGTERM, "work", 143),
        (signal.SIGTERM, "work_that_does_not_end", -signal.SIGTERM),
    ],
)
def test_a_signal_lets_a_command_say_what_becomes_of_its_work(
    sent: signal.Signals, work: str, code: int
) -> None:
    program = COMMAND.replace("SIGNAL", sent.name).replace("WORK", work)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "what is done stays\n")
