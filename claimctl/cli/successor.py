"""A controller inside the command, for a cluster whose own controller is dead.

It is a candidate of the same leader election, so it begins when the Lease of the dead controller
has run out, and a controller that comes back waits for it. It runs the controller's own code, so
that there is one way to release a claim.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from claimctl.cli.errors import CommandFailed
from claimctl.controller.dialect import DialectProbe, DialectUnknown
from claimctl.controller.manager import Manager, NotSynced
from claimctl.controller.preflight import NotReady, missing_rights
from claimctl.controller.settings import Settings
from claimctl.installation import controller_runs
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, NotFound
from claimctl.kube.leases import LeadershipLost, NoNamespace
from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.text import listed
from claimctl.wire.resources import NAMESPACES
from claimctl.wire.seams import Clock


class Successor:
    """Starts at most one controller at a time, and stops it at the end.

    Args:
        settings: of the controller.
        make_manager: makes a controller with these settings, on the command's own connection.
        report: called with lines of progress.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        settings: Settings,
        make_manager: Callable[[Settings], Manager],
        report: Callable[[str], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._settings = settings
        self._make_manager = make_manager
        self._report = report
        self._manager: Manager | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    @property
    def running(self) -> bool:
        return self._task is not None

    @property
    def leading(self) -> bool:
        return self._manager is not None and self._manager.leading

    async def tended(self) -> bool:
        """Whether a controller does the work: one of the cluster, or the one of the command."""
        namespace = self._settings.lease_namespace
        return self.leading or await controller_runs(self._client, self._clock, namespace)

    async def ensure(self) -> None:
        """Start a controller if none runs; another one if it has lost the Lease.

        Raises:
            CommandFailed: the caller lacks a right that a controller needs, or it could not start.
            KubeError: a request at its start failed.
        """
        self._check()
        if self.running or await self.tended():
            return
        await self._check_rights()
        settings = self._settings
        try:
            await self._client.get(NAMESPACES, settings.lease_namespace)
        except Forbidden:
            pass  # the Lease shows whether the namespace exists (see _check)
        except NotFound:
            settings = _without_lease(settings)
        self._report("no controller runs: this command does its work")
        self._stop, self._manager = asyncio.Event(), self._make_manager(settings)
        self._task = asyncio.create_task(self._manager.run(self._stop), name="successor")

    async def _check_rights(self) -> None:
        probe = DialectProbe(self._client, namespace=self._settings.lease_namespace)
        try:
            detection = await probe.detect()
        except DialectUnknown as error:
            raise CommandFailed(_cannot(error)) from error
        groups = DIALECTS[detection.dialect].groups
        lacking = await missing_rights(self._client, binding=detection.needs_binding, groups=groups)
        if lacking:
            raise CommandFailed(
                "no controller runs, and you may not do its work: not permitted: "
                f"{listed(lacking, most=len(lacking))}"
            )

    def _check(self) -> None:
        """Forget a controller that has lost the Lease. The next one needs none if there is no
        namespace for it."""
        if self._task is None or not self._task.done():
            return
        task, self._task, self._manager = self._task, None, None
        try:
            task.result()
        except NoNamespace:
            self._settings = _without_lease(self._settings)
        except LeadershipLost:
            return
        except (NotReady, NotSynced, DialectUnknown) as error:
            raise CommandFailed(_cannot(error)) from error

    async def close(self) -> None:
        """Stop the controller in order, so that its Lease is free at once."""
        if self._task is None:
            return
        self._stop.set()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()
        self._task = self._manager = None


def _without_lease(settings: Settings) -> Settings:
    return settings.model_copy(update={"leader_elect": False})


def _cannot(error: Exception) -> str:
    return f"no controller runs, and this command cannot do its work: {error}"
