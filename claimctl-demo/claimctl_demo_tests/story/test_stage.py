"""How long a step may take: as long as the cluster makes progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import pytest
from kube_in_process.storage.store import Revision

from claimctl.kube.client import Client
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story.stage import Stage, StoryFailed


class Cluster:
    """Changes a pod, or something else, once a second."""

    failures: Sequence[object] = ()

    def __init__(self, plural: str) -> None:
        self.plural = plural
        self.started = asyncio.get_running_loop().time()

    def history(self, since: int = 0) -> Iterable[Revision]:
        last = int(asyncio.get_running_loop().time() - self.started)
        for number in range(since + 1, last + 1):
            name = f"x-{number}"
            change = ("DELETED", "", self.plural, "ml", name, b"{}", None, "user", "delete")
            yield Revision(number, *change, at=0.0)

    def subscribe(self, callback: Callable[[Revision], None]) -> None:
        pass

    async def caught_up(self) -> None:
        pass


def stage(plural: str) -> Stage:
    return Stage(Cluster(plural), cast(DocumentClient, None), cast(Client, None), "")


async def test_a_step_goes_on_while_pods_change() -> None:
    acted = stage("pods")
    assert await acted.until(lambda: acted.world.number >= 50, "50 changes", seconds=10)


async def test_a_step_fails_when_nothing_has_changed_for_its_time() -> None:
    acted = stage("leases")
    with pytest.raises(StoryFailed, match="not within 10 s: 50 changes"):
        await acted.until(lambda: acted.world.number >= 50, "50 changes", seconds=10)
    assert acted.world.number in (10, 11)


async def test_a_step_fails_at_last_although_pods_change() -> None:
    acted = stage("pods")
    with pytest.raises(StoryFailed, match="not within 10 s: more"):
        await acted.until(lambda: acted.world.number >= 1000, "more", seconds=10)
    assert 99 <= acted.world.number <= 101
