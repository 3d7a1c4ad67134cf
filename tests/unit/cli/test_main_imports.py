"""What a command imports. Half of the time of a command goes into that (``claimctl.cli``)."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from kube_in_process.http.listener import serve
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig

from tests.support.builders import NAMESPACE
from tests.support.counting_server import server

ONLY_WHERE_USED = frozenset(
    {"cel", "kubernetes", "opentelemetry", "pydantic", "pygments", "rich", "structlog"}
)
OF_CLUSTERS = frozenset({"aiohttp", "asyncio", "msgspec", "yaml"})
OF_OTHER_COMMANDS = frozenset(
    {
        "claimctl.commands.claims.explanation",
        "claimctl.commands.claims.meanings",
        "claimctl.controller",
        "claimctl.downgrade",
        "claimctl.reservation.assessment",
        "claimctl.reservation.facts.snapshot",
        "claimctl.reservation.kinds.rules",
        "claimctl.telemetry.logs",
    }
)
MOST_MODULES = 90
"""Of claimctl: a module takes one or two milliseconds. Let those go that ``get`` does not use."""


async def imported(*arguments: str) -> frozenset[str]:
    """The modules that a command imports, with the packages above them."""
    code = (
        "import sys; from claimctl.cli.entry import main\ntry: main()\nfinally: print(*sys.modules)"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, *arguments),
        env={**os.environ, "COLUMNS": "200"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return frozenset(out.decode().splitlines()[-1].split())


@pytest.mark.real_time(60)
@pytest.mark.parametrize(
    "line", ["--help", "get --help", "explain --help", "version --client", "completion bash"]
)
async def test_help_and_completion_import_nothing_that_talks_to_a_cluster(line: str) -> None:
    modules = await imported(*line.split())
    assert modules & (ONLY_WHERE_USED | OF_CLUSTERS | OF_OTHER_COMMANDS) == set()


async def imported_by(arguments: str, folder: Path) -> frozenset[str]:
    """The modules that a command imports which asks a cluster with one claim."""
    made = server()
    made.create(
        "resourceclaims", {"metadata": {"name": "train", "namespace": NAMESPACE}, "spec": {}}
    )
    handle = await serve(made.handler)
    try:
        write_kubeconfig(folder / "config", Access(handle.url))
        return await imported(*arguments.split(), "--kubeconfig", str(folder / "config"))
    finally:
        await handle.close()


@pytest.mark.real_time(60)
async def test_get_imports_what_it_uses(tmp_path: Path) -> None:
    modules = await imported_by("get -A", tmp_path)
    assert modules >= {"aiohttp", "claimctl.commands.claims.get_work"}
    assert modules & (ONLY_WHERE_USED | OF_OTHER_COMMANDS) == set()
    assert len([name for name in modules if name.startswith("claimctl.")]) <= MOST_MODULES


@pytest.mark.real_time(60)
async def test_version_imports_what_it_uses(tmp_path: Path) -> None:
    modules = await imported_by("version", tmp_path)
    assert modules >= {"aiohttp", "claimctl.commands.doctor.versions"}
    assert modules & (ONLY_WHERE_USED | OF_OTHER_COMMANDS) == set()
