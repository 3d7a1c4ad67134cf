"""``claimctl orphans --yes`` is killed, cut off or interrupted, and then run again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest

from claimctl.embedded.options import ClusterOptions
from claimctl.kube.errors import KubeError
from claimctl.wire.resources import DEPLOYMENTS, RESOURCECLAIMS
from claimctl.wire.seams import Query, Response, Transport
from tests.e2e import leftovers, manifests
from tests.e2e.harness import HOLD_136, NATIVE, Stage
from tests.e2e.leftovers import MAKERS, Maker, connection, freed, freeing, line
from tests.e2e.test_release_orphans import judged, until_free


async def shared(stage: Stage, name: str = "slice", *, force: bool = False) -> None:
    """Shared by any pod of a Deployment that is gone: its release begins with a fence."""
    await stage.create(DEPLOYMENTS, manifests.deployment(name, 2, name))
    body = manifests.claim(name)
    body["spec"]["reservedFor"] = await leftovers.reference(stage, name)
    await stage.create(RESOURCECLAIMS, body)
    await leftovers.until_pods(stage, name, 2)
    await leftovers.without_pods(stage, name, force=force)


CASES: dict[str, tuple[Maker, ClusterOptions]] = {
    **{cause: (maker, HOLD_136) for cause, maker in MAKERS.items()},
    "Shared": (shared, NATIVE),
}
cases = pytest.mark.parametrize(("maker", "options"), CASES.values(), ids=CASES.keys())
READS_TOO = (shared, MAKERS["DeletedButAllocated"])
"""Here every request counts; elsewhere every write."""


class Line:
    """Counts requests, and lets something go wrong at the n-th.

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


def requests_of(maker: Maker, options: ClusterOptions) -> int:
    """How many requests a run makes that nothing disturbs."""
    counts: list[int] = []

    async def scenario(stage: Stage) -> None:
        await maker(stage)
        line_ = Line(connection(stage), reads=maker in READS_TOO)
        (found,) = await freeing(stage, line_).run()
        assert line(found)[2] == "Freed"
        counts.append(line_.count)

    judged(scenario, options)
    return counts[0]


async def comes_out_right(stage: Stage) -> None:
    """Another run finishes what is left, and leaves no trace."""
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
    for request in range(1, requests_of(maker, options) + 1):

        async def scenario(stage: Stage, at: int = request) -> None:
            await maker(stage)
            line_ = Line(
                connection(stage), at, delivered=delivered, dies=True, reads=maker in READS_TOO
            )
            with suppress(KubeError):
                await freeing(stage, line_).run()
            await comes_out_right(stage)

        judged(scenario, options)


@cases
@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "lost"])
def test_an_answer_that_is_lost_is_found_out_about(
    maker: Maker, options: ClusterOptions, *, delivered: bool
) -> None:
    for request in range(1, requests_of(maker, options) + 1):

        async def scenario(stage: Stage, at: int = request) -> None:
            await maker(stage)
            line_ = Line(connection(stage), at, delivered=delivered, reads=maker in READS_TOO)
            (found,) = await freeing(stage, line_).run()
            assert line(found)[2] in {"Freed", "NotOrphan"}
            await comes_out_right(stage)

        judged(scenario, options)


@cases
def test_interrupted_at_any_request_it_leaves_nothing_half_written(
    maker: Maker, options: ClusterOptions
) -> None:
    """Ctrl-C: what was begun is carried to its end first."""
    for request in range(1, requests_of(maker, options) + 1):

        async def scenario(stage: Stage, at: int = request) -> None:
            await maker(stage)
            line_ = Line(connection(stage), at, hit=lambda: run.cancel(), reads=maker in READS_TOO)
            run = asyncio.create_task(freeing(stage, line_).run())
            with pytest.raises(asyncio.CancelledError):
                await run
            claim = None
            if not await stage.gone(RESOURCECLAIMS, "slice"):
                claim = await stage.claim()
            if claim is not None and claim.status.allocation is None:
                assert leftovers.FINALIZER not in claim.metadata.finalizers
            if claim is not None:
                assert claim.metadata.annotations is None
            await comes_out_right(stage)

        judged(scenario, options)
