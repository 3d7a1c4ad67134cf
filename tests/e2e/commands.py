"""Runs claimctl commands as processes, without a terminal, with a kubeconfig."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kube_in_process.cluster import Cluster as EmbeddedCluster
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.real.client import Version
from kube_in_process.real.servers.programs import CONTROLLER_MANAGER
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig

from claimctl_demo.story import objects
from claimctl_demo.story.presets import DIALECTS
from claimctl_demo.story.real import RealScene, real_plane, really_staged
from claimctl_demo.story.stage import Stage, staged
from tests.e2e import warm
from tests.e2e.harness import chosen
from tests.e2e.real_cluster import RealCluster
from tests.e2e.rights import bodies
from tests.support.printed import checked

SECONDS = 120.0
DEVICE = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-0", "device": "x"}


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The document on stdout, which has exactly the fields of its published schema."""
        return checked(json.loads(self.out))


async def claimctl(
    *arguments: str, stdin: str | None = None, seconds: float = SECONDS
) -> CommandAnswer:
    """Run one command to its end."""
    # beside a real cluster tests run in processes of their own, each with few commands
    cold = chosen.get() is not None
    process = await asyncio.create_subprocess_exec(
        *(command_line(*arguments) if cold else (str(warm.folder() / warm.NAME), *arguments)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
    )
    async with asyncio.timeout(seconds):
        out, err = await process.communicate(stdin.encode() if stdin is not None else None)
    assert process.returncode is not None
    return CommandAnswer(process.returncode, out.decode(), err.decode())


def command_line(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "claimctl", *arguments)


@dataclass(frozen=True, slots=True)
class ServedCluster:
    stage: Stage
    kubeconfig: Path

    @property
    def embedded(self) -> EmbeddedCluster:
        assert isinstance(self.stage.scene, EmbeddedCluster), "put the test into skipped.py"
        return self.stage.scene

    @property
    def claims(self) -> Version:
        """ResourceClaims in the served version."""
        return (self.stage.resource_api, "ResourceClaim")

    async def create_claim(self, name: str) -> None:
        await self.stage.user.create(objects.claim("ml", name, self.stage.resource_api))

    async def create_allocated(self, name: str, *references: dict[str, str]) -> None:
        """Create a claim, and allocate it with this list as an administrator."""
        user = self.stage.user
        await self.create_claim(name)
        patch = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
        await user.patch(self.claims, "ml", name, patch)
        status = {"allocation": {"devices": {"results": [DEVICE]}}, "reservedFor": list(references)}
        await user.patch_status(self.claims, "ml", name, {"status": status})

    @contextmanager
    def without_kcm(self) -> Iterator[None]:
        """Pause kube-controller-manager, at least its work on claims."""
        scene = self.stage.scene
        if isinstance(scene, RealScene):
            manager = scene.plane.servers[CONTROLLER_MANAGER]
            manager.pause()
            yield
            manager.resume()
        else:
            self.embedded.pause("resourceclaim-controller")
            yield
            self.embedded.resume("resourceclaim-controller")

    async def claimctl(self, *arguments: str) -> CommandAnswer:
        return await claimctl(*arguments, "--kubeconfig", str(self.kubeconfig))


@asynccontextmanager
async def cluster(options: ClusterOptions, directory: Path) -> AsyncIterator[ServedCluster]:
    """A cluster with a running controller and a kubeconfig."""
    real = chosen.get()
    if real is not None:
        async with _on_real_cluster(real, options) as served:
            yield served
        return
    # before there is a Lease to renew: it takes seconds on a busy machine
    await asyncio.to_thread(warm.folder)
    async with staged(options) as stage:
        kubeconfig = directory / "kubeconfig"
        write_kubeconfig(kubeconfig, Access(stage.url))
        yield ServedCluster(stage, kubeconfig)
        assert stage.witness.violations == []


@asynccontextmanager
async def _on_real_cluster(
    real: RealCluster, options: ClusterOptions
) -> AsyncIterator[ServedCluster]:
    """A control plane for one test alone: commands look at the whole cluster."""
    if options.preset is not real.dialect:
        pytest.skip(f"the cluster speaks {DIALECTS[real.dialect]}, not {DIALECTS[options.preset]}")
    folder = Path(os.environ["KUBEBUILDER_ASSETS"])
    with real_plane(folder, pod_groups=real.dialect is Preset.POD_GROUPS) as plane:
        async with really_staged(plane) as (stage, scene):
            # doctor asks a real API server for the rights of the controller's ServiceAccount
            for body in bodies("controller.yaml", "templates.yaml"):
                await stage.user.create(body)
            yield ServedCluster(stage, plane.files.kubeconfig())
            await stage.look_closely()
            assert stage.witness.violations == []
            assert scene.findings() == []
