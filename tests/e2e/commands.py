"""Running claimctl as people do: a process of its own, no terminal, a kubeconfig."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claimctl.demo.stage import EmbeddedStage, staged
from claimctl.embedded.kubeconfig import Access, write_kubeconfig
from claimctl.embedded.options import ClusterOptions

SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


async def claimctl(*arguments: str, stdin: str | None = None, seconds: float = SECONDS) -> Answer:
    """Run one command to its end."""
    process = await asyncio.create_subprocess_exec(
        *command_line(*arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
    )
    async with asyncio.timeout(seconds):
        out, err = await process.communicate(stdin.encode() if stdin is not None else None)
    assert process.returncode is not None
    return Answer(process.returncode, out.decode(), err.decode())


def command_line(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "claimctl.cli.main", *arguments)


@dataclass(frozen=True, slots=True)
class Cluster:
    stage: EmbeddedStage
    kubeconfig: Path

    async def claimctl(self, *arguments: str) -> Answer:
        return await claimctl(*arguments, "--kubeconfig", str(self.kubeconfig))


@asynccontextmanager
async def cluster(options: ClusterOptions, directory: Path) -> AsyncIterator[Cluster]:
    """A served cluster with a controller on it, and a kubeconfig for it."""
    async with staged(options) as stage:
        kubeconfig = directory / "kubeconfig"
        write_kubeconfig(kubeconfig, Access(stage.url))
        yield Cluster(stage, kubeconfig)
        assert stage.witness.violations == []
