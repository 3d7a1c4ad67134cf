"""The embedded servers that recordings are played against."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from claimctl.embedded.handler import Handler
from claimctl.embedded.options import ClusterOptions, Dialect
from claimctl.embedded.server import api_server
from tests.conformance.replay import Recording, Replay, Stage, StepResult

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class LoopTime:
    """Wall time that goes with the loop's clock."""

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _options(recording: Recording) -> ClusterOptions:
    major, minor = recording.server.removeprefix("v").split(".")[:2]
    version = (int(major), int(minor))
    dialect = Dialect.PODGROUP if version >= (1, 36) else Dialect.HOLD
    return ClusterOptions(dialect=dialect, kubernetes_version=version)


def _server(recording: Recording) -> Handler:
    return api_server(_options(recording), LoopTime())


async def play(recording: Recording) -> list[StepResult]:
    """One run against an API server alone."""
    handler = _server(recording)
    stage = Stage(handler, handler.api.store.compact)
    return await Replay(recording, stage).run()
