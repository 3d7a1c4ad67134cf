"""Runs ``claimctl uninstall prepare`` in a scenario, on the scenario's clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from claimctl.commands.install.objects import Objects
from claimctl.commands.uninstall.run import Uninstall, UninstallResult, UninstallWanted
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Settings
from claimctl.kube.client import Client
from claimctl.kube.discovery import use_served_versions
from claimctl.wire.seams import Transport
from tests.e2e.harness import NAMESPACE, Stage

GRACE = 30.0
"""For claims without a ClaimReservation, in seconds."""


@dataclass
class Remover:
    """The command of one administrator, for the namespace of the scenario.

    The witness judges its writes as those of a controller. These scenarios are for the embedded
    cluster alone: the command looks for a controller's Lease and for CRDs in the whole cluster.
    """

    stage: Stage
    namespaces: tuple[str, ...] = (NAMESPACE,)
    timeout: float = 600.0
    told: list[str] = field(default_factory=list)
    through: Callable[[Transport], Transport] = lambda inner: inner
    """Wraps the connection of the command and of the controller inside it."""

    async def run(self, **settings: Any) -> UninstallResult:
        return await (await self._command(**settings)).run()

    async def look(self) -> UninstallResult:
        return await (await self._command()).look()

    async def clean(self) -> bool:
        """What ``--verify`` finds."""
        return not (await self.look()).left

    def transport(self) -> Transport:
        return self.through(self.stage.connect())

    async def _command(self, **settings: Any) -> Uninstall:
        client = Client(self.transport(), self.stage.clock)
        await use_served_versions(client)
        told = {**self.stage.site.settings, **settings}
        wanted = UninstallWanted(
            Settings.checked(
                **{
                    "identity": "remover",
                    "duty": "retire",
                    "namespaces": frozenset(self.namespaces),
                    **told,
                }
            ),
            self.namespaces,
            self.stage.scaled(GRACE),
            self.timeout,
            believing=True,
        )
        objects = Objects(self.transport(), self.stage.clock)
        return Uninstall(client, self.stage.clock, wanted, objects, self._make, self.told.append)

    def _make(self, settings: Settings) -> Manager:
        return Manager(settings, self.transport(), self.stage.clock, rng=Random(1))


def reasons(result: UninstallResult) -> list[tuple[str, str, str]]:
    return [(each.kind, each.name, each.reason) for each in result.left]
