"""A cluster with RBAC, a controller, a held claim, and users with different roles."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_in_process.http.listener import serve
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig

from claimctl.kube.client import Client
from claimctl.wire.resources import DEPLOYMENTS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.commands import CommandAnswer, claimctl
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage, embedded_cluster
from tests.e2e.rights import RESOURCES, as_account, grant, permissions, strict
from tests.e2e.site import EmbeddedSite

FILES = ("controller.yaml", "users.yaml")


@dataclass(frozen=True, slots=True)
class Office:
    """A cluster with a held claim, and users with different rights."""

    stage: Stage
    kubeconfig: Path

    def client(self, user: str) -> Client:
        """A client with the rights of a user."""
        transport = self.stage.embedded.transport(user, ())
        return Client(transport, self.stage.clock)

    async def ask(self, user: str, *arguments: str) -> CommandAnswer:
        return await claimctl(*arguments, "--as", user, "--kubeconfig", str(self.kubeconfig))


async def bind(stage: Stage) -> None:
    """``view``, ``edit`` and ``admin`` are what their names say; ``nobody`` may do nothing."""
    for role in ("view", "edit"):
        body = binding(role, role)
        await stage.client.create(RESOURCES["RoleBinding"], body, NAMESPACE)
    for user, role in (
        ("admin", "view"),
        ("admin", "claimctl-admin"),
        ("remover", "claimctl-uninstall"),
        ("doctor", "claimctl-doctor"),
    ):
        await stage.client.create(RESOURCES["ClusterRoleBinding"], binding(role, user))


def binding(role: str, user: str) -> dict[str, Any]:
    """The body of a binding of a ClusterRole to a user."""
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": f"{user}-{role}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


async def _hold(stage: Stage) -> None:
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.deployment(replicas=1, reserve="*", idle_timeout_seconds="3600")
    await stage.create(DEPLOYMENTS, body)
    await stage.until_condition("Reserved", "True", "Reserved")


@asynccontextmanager
async def office(directory: Path) -> AsyncIterator[Office]:
    kubeconfig = directory / "kubeconfig"
    async with embedded_cluster(strict(HOLD_136), epoch=None) as cluster:
        server = await serve(cluster.handler)
        write_kubeconfig(kubeconfig, Access(server.url))
        stage = Stage(
            client=Client(cluster.transport(), cluster.clock),
            clock=cluster.clock,
            connect=cluster.transport,
            site=EmbeddedSite(cluster),
            cluster=cluster,
        )
        try:
            async with stage.controllers():
                await grant(stage, permissions(*FILES), *FILES)
                await bind(stage)
                await stage.started(transport=await as_account(stage), settle_seconds=0.3)
                await _hold(stage)
                yield Office(stage, kubeconfig)
        finally:
            await server.close()
