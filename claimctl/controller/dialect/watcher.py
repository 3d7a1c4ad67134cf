"""Detect the dialect again whenever a watch reconnects.

An API server that is upgraded, or restarted with other feature gates, breaks every watch. So
polling is not needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from claimctl.controller.dialect.probe import Detection, DialectProbe, DialectUnknown
from claimctl.kube.errors import KubeError, NotFound
from claimctl.kube.informer import Informer
from claimctl.wire.seams import Clock

log = structlog.get_logger(__name__)

PAUSE = 1.0
"""Seconds to wait after a watch was opened again, while the server may still be starting."""
RETRY = 15.0
TROUBLE = 5.0
"""Seconds between two checks whether the informer can follow; a check sends no request."""


class Redetection:
    """Detects the dialect after each reconnection of one informer, and reports a change."""

    def __init__(
        self,
        probe: DialectProbe,
        informer: Informer[Any],
        clock: Clock,
        changed: Callable[[Detection], Awaitable[None]],
    ) -> None:
        self._probe = probe
        self._informer = informer
        self._clock = clock
        self._changed = changed
        self._wake = asyncio.Event()
        self._connected = False
        informer.on_connect(self._on_connect)

    def _on_connect(self) -> None:
        if self._connected:
            self._wake.set()
        self._connected = True

    async def run(self, detection: Detection) -> None:
        """Keep the detection up to date until cancelled."""
        while True:
            await self._wait_for_wake()
            await self._clock.sleep(PAUSE)
            self._wake.clear()
            try:
                latest = await self._probe.detect()
            except (KubeError, DialectUnknown) as error:
                log.warning("cannot look at the reservation mode again", error=str(error))
                await self._clock.sleep(RETRY)
                self._wake.set()
                continue
            if latest != detection:
                log.info("the cluster has changed", dialect=latest.dialect, reasons=latest.reasons)
                await self._changed(latest)
                detection = latest

    async def _wait_for_wake(self) -> None:
        """Wait until a watch was opened again, or cannot be: its version may not be served."""
        while not self._wake.is_set() and not isinstance(self._informer.trouble, NotFound):
            try:
                async with asyncio.timeout(TROUBLE):
                    await self._wake.wait()
            except TimeoutError:
                continue
