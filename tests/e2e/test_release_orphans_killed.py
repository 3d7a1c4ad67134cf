"""``claimctl doctor orphans --yes`` is killed, cut off or interrupted, and then run again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import pytest
from kube_in_process.options import ClusterOptions
from kube_in_process.virtual import run

from claimctl.kube.errors import KubeError
from claimctl.wire.resources import DEPLOYMENTS, RESOURCECLAIMS
from claimctl.wire.seams import Query, Response, Transport
from tests.e2e import manifests, orphans
from tests.e2e.harness import HOLD_136, NATIVE, Stage, embedded_stage
from tests.e2e.orphans import (
    MAKERS,
    Maker,
    connection,
    freed,
    freeing,
    judged,
    outcome_of,
    until_free,
)


async def shared(stage: Stage, name: str = "slice", *, force: bool = False) -> None:
    """Shared by any pod of a Deployment that is gone: its release begins with a fence."""
    await stage.create(DEPLOYMENTS, manifests.deployment(name, 2, name))
    body = manifests.claim(name)
    body["spec"]["reservedFor"] = await orphans.reference(stage, name)
    await stage.create(RESOURCECLAIMS, body)
    await orphans.until_pods(stage, name, 2)
    await orphans.without_pods(stage, name, force=force)


CASES: dict[str, tuple[Maker, ClusterOptions]] = {
    **{cause: (maker, HOLD_136) for cause, maker in MAKERS.items()},
    "Shared": (shared, NATIVE),
}
cases = pytest.mark.parametrize(("maker", "options"), CASES.values(), ids=CASES.keys())
READS_TOO = (shared, MAKERS["DeletedButAllocated"])
"""Here every request counts; elsewhere every write."""


class BreakingTransport:
    """Counts requests, and fails the n-th.

    Args:
        at: 0 for never.
        delivered: whether the request still reaches the server, its answer being lost.
        dies: whether nothing comes through afterwards.
        hit: called before the n-th request, in the place of losing it.
        reads: whether these count too.
    """

    def __init__(
        self,
        inner: Transport,
        at: int = 0,
        *,
        delivered: bool = True,
        dies: bool = False,
        hit: Callable[[], object] | None = None,
        reads: bool = True,
    ) -> None:
        self._inner, self._at, self._delivered, self._dies = inner, at, delivered, dies
        self._hit, self._reads = hit, reads
        self.count = 0

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        dead = self._dies and 0 < self._at <= self.count
        if not dead and not self._reads and method == "GET":
            return await self._inner.send(method, path, query, headers, body)
        self.count += 1
        if self._hit is not None and self.count == self._at:
            self._hit()
            await asyncio.sleep(0)  # as over a network: here a cancelled run would stop
        elif self.count == self._at or (self._dies and 0 < self._at < self.count):
            if self._delivered and self.count == self._at:
                await self._inner.send(method, path, query, headers, body)
            raise ConnectionResetError("cut off")
        return await self._inner.send(method, path, query, headers, body)


async def undisturbed(maker: Maker, options: ClusterOptions) -> int:
    """How many requests a run makes that nothing disturbs."""
    async with judged(embedded_stage(options)) as stage:
        await maker(stage)
        transport = BreakingTransport(connection(stage), reads=maker in READS_TOO)
        (found,) = await freeing(stage, transport).run()
        assert outcome_of(found)[2] == "Freed"
        return transport.count


Story = Callable[[Stage, int], Awaitable[None]]


def at_each_request(maker: Maker, options: ClusterOptions, story: Story) -> None:
    """Play a story once for each request, each time on a clock of its own."""

    async def played(request: int) -> None:
        async with judged(embedded_stage(options)) as stage:
            await maker(stage)
            await story(stage, request)
            await comes_out_right(stage)

    for request in range(1, run(undisturbed(maker, options)) + 1):
        run(played(request))


async def comes_out_right(stage: Stage) -> None:
    """Another run frees what is left."""
    assert {outcome for *_, outcome in await freed(stage)} <= {"Freed"}
    await until_free(stage)
    if not await stage.gone(RESOURCECLAIMS, "slice"):
        assert (await stage.claim()).metadata.annotations is None
    assert await freed(stage) == []


@cases
@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "lost"])
def test_killed_at_any_request_another_run_finishes(
    maker: Maker, options: ClusterOptions, *, delivered: bool
) -> None:
    async def killed(stage: Stage, request: int) -> None:
        reads = maker in READS_TOO
        transport = BreakingTransport(
            connection(stage), request, delivered=delivered, dies=True, reads=reads
        )
        with suppress(KubeError):
            await freeing(stage, transport).run()

    at_each_request(maker, options, killed)


@cases
@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "lost"])
def test_an_answer_that_is_lost_is_found_out_about(
    maker: Maker, options: ClusterOptions, *, delivered: bool
) -> None:
    async def lost(stage: Stage, request: int) -> None:
        transport = BreakingTransport(
            connection(stage), request, delivered=delivered, reads=maker in READS_TOO
        )
        (found,) = await freeing(stage, transport).run()
        assert outcome_of(found)[2] in {"Freed", "NotOrphan"}

    at_each_request(maker, options, lost)


@cases
def test_interrupted_at_any_request_it_leaves_nothing_half_written(
    maker: Maker, options: ClusterOptions
) -> None:
    """After Ctrl-C the command first finishes the release that it has begun."""

    async def interrupted(stage: Stage, request: int) -> None:
        reads = maker in READS_TOO
        transport = BreakingTransport(
            connection(stage), request, hit=lambda: task.cancel(), reads=reads
        )
        task = asyncio.create_task(freeing(stage, transport).run())
        with pytest.raises(asyncio.CancelledError):
            await task
        if await stage.gone(RESOURCECLAIMS, "slice"):
            return
        claim = await stage.claim()
        if claim.status.allocation is None:
            assert orphans.FINALIZER not in claim.metadata.finalizers
        assert claim.metadata.annotations is None

    at_each_request(maker, options, interrupted)
