"""A controller inside the command, for a cluster whose own controller is dead.

It is a candidate of the same leader election, so it begins when the Lease of the dead controller
has run out, and a controller that comes back waits for it. Nothing else may know how a release is
made: this is the code of the controller.
"""

from __future__ import annotations

import asyncio

from claimctl.cli.errors import CommandFailed
from claimctl.controller.dialect import DialectUnknown
from claimctl.controller.manager import Manager, NotSynced
from claimctl.controller.preflight import NotReady
from claimctl.kube.leases import LeadershipLost


class Successor:
    """Starts at most one controller at a time, and stops it at the end."""

    def __init__(self) -> None:
        self._manager: Manager | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    @property
    def running(self) -> bool:
        return self._task is not None

    @property
    def leading(self) -> bool:
        return self._manager is not None and self._manager.leading

    def start(self, manager: Manager) -> None:
        """Start a controller. None may be running."""
        self._stop, self._manager = asyncio.Event(), manager
        self._task = asyncio.create_task(manager.run(self._stop), name="successor")

    def check(self) -> None:
        """Forget a controller that has lost the Lease; ``start`` starts another one. CommandFailed
        if it could not start; KubeError if a request at its start failed."""
        if self._task is None or not self._task.done():
            return
        task, self._task, self._manager = self._task, None, None
        try:
            task.result()
        except LeadershipLost:
            return
        except (NotReady, NotSynced, DialectUnknown) as error:
            text = f"no controller runs, and this command cannot do its work: {error}"
            raise CommandFailed(text) from error

    async def close(self) -> None:
        """Stop the controller in order, so that its Lease is free at once."""
        if self._task is None:
            return
        self._stop.set()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()
        self._task = self._manager = None
