"""``claimctl doctor orphans --yes`` is killed, cut off or interrupted, and then run again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import pytest
from kube_in_process.options import ClusterOptions
from kube_in_process.virtual import run

from claimctl.installation import Address, controller_lease
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
from tests.e2e.site import CONTROLLER_NAMESPACE


async def shared(stage: Stage, name: str = "slice", *, force: bool = False) -> None:
    """Shared by any pod of a Deployment that is gone: its release begins with a fence."""
    await stage.create(DEPLOYMENTS, manifests.deployment(name, 2, name))
    body = manifests.claim(name)
    body["spec"]["reservedFor"] = await orphans.reference(stage, name)
    await stage.create(RESOURCECLAIMS, body)
    await orphans.until_pods(stage, name, 2)
    await orphans.without_pods(stage, name, force=force)


CASES: dict[str, tuple[Maker, ClusterOptions]] = {
    **{
        cause: (MAKERS[cause], HOLD_136)
        for cause in ("AllocatedToNobody", "DeletedButAllocated", "ListedAhead", "OrphanedHold")
    },
    "Shared": (shared, NATIVE),
}
"""One for each order in which a release makes its writes."""
cases = pytest.mark.parametrize(("maker", "options"), CASES.values(), ids=CASES.keys())
two = ("ListedAhead", "Shared")
longest = pytest.mark.parametrize(("maker", "options"), [CASES[it] for it in two], ids=two)


def is_write(method: str, path: str) -> bool:
    """Whether the request is one of the protocol: a write of the claim or of what adopts it."""
    return method in ("POST", "PATCH", "DELETE") and "claim" in path and "/leases/" not in path


class BreakingTransport:
    """Counts the writes of the protocol, and loses the answer of the n-th.

    Args:
        at: 0 for never.
        dies: whether nothing comes through afterwards.
        hit: called before the n-th write, in the place of losing it.
    """

    def __init__(
        self,
        inner: Transport,
        at: int = 0,
        *,
        dies: bool = False,
        hit: Callable[[], object] | None = None,
    ) -> None:
        self._inner, self._at, self._dies = inner, at, dies
        self._hit = hit
        self.writes: list[str] = []

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self._dies and 0 < self._at <= len(self.writes):
            raise ConnectionResetError("cut off")
        if ("dryRun", "All") in query or not is_write(method, path):
            return await self._inner.send(method, path, query, headers, body)
        self.writes.append(f"{method} {path}")
        if len(self.writes) == self._at and self._hit is not None:
            self._hit()
            await asyncio.sleep(0)  # as over a network: here a cancelled run would stop
        elif len(self.writes) == self._at:
            await self._inner.send(method, path, query, headers, body)
            raise ConnectionResetError("cut off")
        return await self._inner.send(method, path, query, headers, body)


GRACE = 10.0
"""Short, so that many runs take little time; other scenarios judge the usual grace."""


async def undisturbed(maker: Maker, options: ClusterOptions) -> int:
    """How many writes a run makes that nothing disturbs."""
    async with judged(embedded_stage(options), GRACE) as stage:
        await maker(stage)
        transport = BreakingTransport(connection(stage))
        (found,) = await freeing(stage, transport, grace=GRACE).run()
        assert outcome_of(found)[2] == "Freed"
        # of the command: create, record, withdraw; of the controller: at least one of the claim
        assert len(transport.writes) > 3
        return len(transport.writes)


Story = Callable[[Stage, int], Awaitable[None]]


def at_each_write(maker: Maker, options: ClusterOptions, story: Story) -> None:
    """Play a story once for each write, each time on a clock of its own."""

    async def played(write: int) -> None:
        async with judged(embedded_stage(options), GRACE) as stage:
            await maker(stage)
            await story(stage, write)
            await comes_out_right(stage)

    for write in range(1, run(undisturbed(maker, options)) + 1):
        run(played(write))


async def comes_out_right(stage: Stage) -> None:
    """Another run frees what is left, and nothing of the command stays."""
    assert {outcome for *_, outcome in await freed(stage, grace=GRACE)} <= {"Freed"}
    await until_free(stage)
    assert not await stage.reservations()
    assert await freed(stage, grace=GRACE) == []


@cases
def test_killed_at_any_write_another_run_finishes(maker: Maker, options: ClusterOptions) -> None:
    """Killed before a write, it leaves the same as killed at the write before it."""

    async def killed(stage: Stage, write: int) -> None:
        transport = BreakingTransport(connection(stage), write, dies=True)
        with suppress(KubeError):
            await freeing(stage, transport, grace=GRACE).run()

    at_each_write(maker, options, killed)


@longest
def test_an_answer_that_is_lost_is_found_out_about(maker: Maker, options: ClusterOptions) -> None:
    async def lost(stage: Stage, write: int) -> None:
        transport = BreakingTransport(connection(stage), write)
        (found,) = await freeing(stage, transport, grace=GRACE).run()
        assert outcome_of(found)[2] == "Freed"

    at_each_write(maker, options, lost)


def test_interrupted_at_any_write_another_run_finishes() -> None:
    """Ctrl-C stops the controller inside the command in order. A kill leaves what it leaves."""

    async def interrupted(stage: Stage, write: int) -> None:
        transport = BreakingTransport(connection(stage), write, hit=lambda: task.cancel())
        task = asyncio.create_task(freeing(stage, transport, grace=GRACE).run())
        with pytest.raises(asyncio.CancelledError):
            await task
        lease = await controller_lease(stage.client, Address(CONTROLLER_NAMESPACE))
        assert lease is None or not lease.spec.holder_identity, "the next one need not wait"

    at_each_write(*CASES["Shared"], interrupted)
