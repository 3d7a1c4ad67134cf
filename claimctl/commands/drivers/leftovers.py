"""Remove what a check has made: its own at its end, and that of earlier checks that were killed.

A check that runs moves the deadline of its Job all the time. If it is killed, the Job ends a minute
later. Kubernetes then deletes the Job, and garbage collection the pods and the claims. One thing
may stay: a claim that lists the Job, because the check was killed with its hold in the list. The
next check removes that entry, and all else that it finds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from claimctl.commands.drivers.manifests import LEFT_SECONDS, Check
from claimctl.kube.claim_lists import change_list
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, KubeError, NotFound
from claimctl.live_objects import change_object
from claimctl.reservation.facts.references import is_pod
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import HasMetadata
from claimctl.wire.reservations import DRIVER_CHECK_LABEL as LABEL
from claimctl.wire.resources import JOBS, PODS, RESOURCECLAIMS, Resource

RENEW_SECONDS = 10.0
DEAD_SECONDS = 25.0
"""A check whose Job has not changed for so long is not running."""
GOING_SECONDS = 60.0
"""How long the end of pods and claims is waited for."""
LOOK_SECONDS = 0.5
_OWNED: tuple[Resource[Any], ...] = (PODS, RESOURCECLAIMS)
TRIES = 10


@asynccontextmanager
async def renewed(client: Client, check: Check) -> AsyncIterator[None]:
    """Move the deadline of the Job while the block runs."""

    async def renew() -> None:
        begun = client.clock.monotonic()
        while True:
            await client.clock.sleep(RENEW_SECONDS)
            seconds = round(client.clock.monotonic() - begun) + LEFT_SECONDS
            with suppress(KubeError):  # there is time for another try
                await _move_deadline(client, check, seconds)

    task = asyncio.create_task(renew())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _move_deadline(client: Client, check: Check, seconds: int) -> None:
    deadline = {"spec": {"activeDeadlineSeconds": seconds}}
    await change_object(client, JOBS, check.name, lambda _: deadline, check.namespace)


@dataclass(frozen=True, slots=True)
class Made:
    """The objects of checks in one namespace."""

    jobs: dict[str, int]
    """The generation of each Job that is there, by name."""
    names: frozenset[str]
    """The names of all checks of which something is there."""


async def look_for(client: Client, namespace: str) -> Made:
    jobs = (await client.list(JOBS, namespace, label_selector=LABEL, partial=True)).items
    others: list[HasMetadata] = []
    for resource in _OWNED:
        listing = await client.list(resource, namespace, label_selector=LABEL, partial=True)
        others += listing.items
    return Made(
        {job.metadata.name: job.metadata.generation for job in jobs},
        frozenset(_check_of(it) for it in (*jobs, *others)),
    )


def _check_of(made: HasMetadata) -> str:
    return (made.metadata.labels or {})[LABEL]


async def remove_leftovers(client: Client, namespace: str, say: Callable[[str], None]) -> None:
    """Remove what checks have left that do not run any more."""
    before = await look_for(client, namespace)
    running = frozenset[str]()
    if before.jobs:
        say("an earlier check has left something, or still runs: looking for a moment")
        await client.clock.sleep(DEAD_SECONDS)
        now = (await look_for(client, namespace)).jobs
        running = frozenset(name for name in now if now[name] != before.jobs.get(name))
    for name in sorted(before.names - running):
        say(f"removing what the check {name} has left")
        await remove(client, namespace, name)


async def remove(client: Client, namespace: str, name: str) -> tuple[str, ...]:
    """Remove everything of one check.

    Returns:
        What is still there after some time: pods that their kubelet cannot end, and their claims.
        They are being deleted.
    """
    selector = f"{LABEL}={name}"
    for resource in _OWNED:
        listing = await client.list(resource, namespace, label_selector=selector, partial=True)
        for it in listing.items:
            if isinstance(it, ResourceClaim):
                await _let_go(client, it.metadata.name, namespace)
            await _delete(client, resource, it.metadata.name, namespace)
    left = await _wait(client, namespace, selector)
    await _delete(client, JOBS, name, namespace)
    return left


async def _let_go(client: Client, name: str, namespace: str) -> None:
    """Take the hold of a check out of its claim: nobody else would."""
    with suppress(NotFound):
        await change_references(client, name, namespace, lambda listed: filter(is_pod, listed))


class ClaimLost(Exception):
    """The claim is not allocated any more, although the check uses it."""


async def change_references(
    client: Client,
    name: str,
    namespace: str,
    change: Callable[[tuple[Reference, ...]], Iterable[Reference]],
) -> None:
    """Change the list of a claim as it is now, and decide anew if another client was faster.

    Raises:
        ClaimLost: the claim has no allocation, so that it can have no list.
    """
    for attempt in range(TRIES):
        claim = await client.get(RESOURCECLAIMS, name, namespace)
        wanted = tuple(change(claim.status.reserved_for))
        if wanted == claim.status.reserved_for:
            return
        if claim.status.allocation is None:
            raise ClaimLost
        try:
            await change_list(client, RESOURCECLAIMS, claim, wanted)
        except Conflict:
            if attempt == TRIES - 1:
                raise
        else:
            return


async def _delete(client: Client, resource: Resource[Any], name: str, namespace: str) -> None:
    with suppress(NotFound):
        await client.delete(resource, name, namespace)


async def _wait(client: Client, namespace: str, selector: str) -> tuple[str, ...]:
    """Wait until pods and claims are gone; the ones that stay."""
    until = client.clock.monotonic() + GOING_SECONDS
    while True:
        there: list[str] = []
        for resource in _OWNED:
            listing = await client.list(resource, namespace, label_selector=selector, partial=True)
            there += (f"{resource.kind} {it.metadata.name}" for it in listing.items)
        if not there or client.clock.monotonic() >= until:
            return tuple(there)
        await client.clock.sleep(LOOK_SECONDS)
