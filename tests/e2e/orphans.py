"""Creates orphans in the ways in which they come about: a component was down at a bad moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any, Protocol

from claimctl.cli.successor import Successor
from claimctl.commands.orphans.reclaim import Candidate, Reclaim
from claimctl.controller.manager import Manager
from claimctl.controller.settings import Settings
from claimctl.kube.client import Client
from claimctl.reservation.facts.pods import claim_names, unschedulable_since
from claimctl.wire.base import decode, to_plain
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    RESOURCECLAIMS,
)
from claimctl.wire.seams import Transport
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE, Stage
from tests.e2e.site import accused

ADMINISTRATOR = "administrator"
KCM = "resourceclaim-controller"
NOWHERE = {"kubernetes.io/hostname": "nowhere"}
"""No node has this label."""
FINALIZER = "resource.kubernetes.io/delete-protection"
VM = {"apiGroup": "kubevirt.io", "resource": "virtualmachines", "name": "vm", "uid": "vm-1"}


def connection(stage: Stage) -> Transport:
    return stage.site.connection(ADMINISTRATOR)


def freeing(
    stage: Stage,
    transport: Transport | None = None,
    *,
    grace: float | None = None,
) -> Reclaim:
    """One run of ``claimctl doctor orphans`` as an administrator, with a controller of its own if
    none runs.

    Args:
        grace: the default is that of every claim; on a real cluster, where it passes, a tenth.
    """
    if grace is None and stage.cluster is None:
        grace = stage.scaled(300)
    through = transport or connection(stage)
    client = Client(through, stage.clock)
    client.use_version(RESOURCECLAIMS.group, stage.client.served(RESOURCECLAIMS).version)
    settings = Settings.checked(**{"identity": "freer", "duty": "retire", **stage.site.settings})

    def make(settings: Settings) -> Manager:
        return Manager(settings, through, stage.clock, rng=Random(1))

    told: list[str] = []
    successor = Successor(client, stage.clock, settings, make, told.append)
    return Reclaim(client, stage.clock, "", successor, told.append, grace, believing=True)


async def freed(stage: Stage, **options: Any) -> list[tuple[str, str, str]]:
    return list(map(outcome_of, await freeing(stage, **options).run()))


def outcome_of(found: Candidate) -> tuple[str, str, str]:
    return found.key.name, str(found.orphan.cause), str(found.outcome)


def reasons(found: Candidate) -> list[str]:
    """The reasons that block freeing the claim."""
    return [str(one.reason) for one in found.orphan.blockers]


# -- how they come about


async def in_use(stage: Stage, name: str = "slice", replicas: int = 2) -> None:
    """A claim that a Deployment's pods use, without a hold."""
    await stage.create(RESOURCECLAIMS, manifests.claim(name))
    await stage.create(DEPLOYMENTS, manifests.deployment(name, replicas, name))
    await until_pods(stage, name, replicas)


async def deleted_but_allocated(stage: Stage, name: str = "slice", *, force: bool = False) -> None:
    """kube-controller-manager (KCM) is down while the claim and its users are deleted."""
    await in_use(stage, name)
    await stage.site.pause(KCM)
    await stage.delete(RESOURCECLAIMS, name)
    await without_pods(stage, name, force=force)


async def dead_pods(stage: Stage, name: str = "slice", *, force: bool = False) -> None:
    """KCM is down while the pods are deleted."""
    await in_use(stage, name)
    await stage.site.pause(KCM)
    await without_pods(stage, name, force=force)


async def allocated_to_nobody(stage: Stage, name: str = "slice", *, force: bool = False) -> None:
    """Another writer empties the list; KCM does not deallocate then."""
    await dead_pods(stage, name, force=force)
    await foreign(stage, name)
    await stage.site.resume(KCM)


async def dangling(stage: Stage, name: str = "slice", *, force: bool = False) -> None:
    """Another writer held the claim for a Deployment that is gone."""
    await in_use(stage, name)
    await foreign(stage, name, await reference(stage, name), keep=True)
    await without_pods(stage, name, force=force)


async def orphaned_hold(stage: Stage, name: str = "slice", *, force: bool = False) -> None:
    """The ClaimReservation's finalizer is removed by hand while no controller runs."""
    await stage.started("holder")
    await in_use(stage, name)
    await stage.create(CLAIMRESERVATIONS, manifests.reservation(name, "Deployment", name, name))

    async def holds() -> bool:
        return f"deployments/{name}" in await stage.references(name)

    await stage.until(holds, "it is held")
    await stage.stop("holder")
    await tear_away(stage, name)
    async with going(stage, name, force=force):
        await stage.patch(DEPLOYMENTS, name, {"spec": {"replicas": 0}})


async def orphaned_tombstones(stage: Stage, name: str = "slice", *, force: bool = False) -> None:
    """A Job's pods have finished beside a hold; then the Job and the hold are removed by hand."""
    await stage.started("holder")
    await stage.create(RESOURCECLAIMS, manifests.claim(name))
    job = manifests.job(name, claim=name, seconds=3)
    await stage.create(JOBS, job)
    beside = manifests.deployment("beside", 1, name)
    await stage.create(DEPLOYMENTS, beside)
    body = manifests.reservation(name, "Deployment", "beside", name)
    await stage.create(CLAIMRESERVATIONS, body)

    async def buried() -> bool:
        return any(each.startswith("finishedpods/") for each in await stage.references(name))

    await stage.until(buried, "the finished pod has a tombstone")
    await stage.stop("holder")
    await tear_away(stage, name)
    marks = [each for each in await listed(stage, name) if each["resource"] == "finishedpods"]
    async with going(stage, name, force=force):
        await stage.delete(DEPLOYMENTS, "beside")
        await stage.delete(JOBS, name)
    await foreign(stage, name, *marks)


async def listed_ahead(
    stage: Stage, name: str = "slice", *, force: bool = False, writer: Transport | None = None
) -> None:
    """claimctl lists pods ahead that wait, and its hold leaves before them; then the bound pod."""
    await in_use(stage, name, replicas=1)
    await waiting_ahead(stage, name, NOWHERE, writer=writer)
    (bound,) = [pod for pod in await using(stage, name) if pod.spec.node_name]
    if force:
        await stage.site.pause("kubelet")
    await stage.delete(DEPLOYMENTS, name)
    if force:
        await stage.clock.sleep(1)
        await stage.site.force_delete(bound.metadata.name)
        await stage.site.resume("kubelet")

    async def holds() -> bool:
        listed_uids = {each.uid for each in (await stage.claim(name)).status.reserved_for}
        gone = await stage.gone(PODS, bound.metadata.name)
        return gone and bound.metadata.uid not in listed_uids

    await stage.until(holds, "the bound pod and its entry are gone")


async def waiting_ahead(
    stage: Stage, claim: str, selector: dict[str, str], *, writer: Transport | None = None
) -> None:
    """Two pods that wait for a node of the selector, and whose entries claimctl left in the list.

    Args:
        writer: the connection of claimctl; the default is the administrator's.
    """
    body = manifests.deployment("waiting", 2, claim)
    body["spec"]["template"]["spec"]["nodeSelector"] = selector
    await stage.create(DEPLOYMENTS, body)

    async def waiting() -> list[Pod]:
        return [pod for pod in await using(stage, claim) if unschedulable_since(pod) is not None]

    async def holds() -> bool:
        return len(await waiting()) == 2

    await stage.until(holds, "the pods are unschedulable")
    ahead = [to_plain(pod.reference) for pod in await waiting()]
    ours = Client(writer or connection(stage), stage.clock)
    ours.use_version(RESOURCECLAIMS.group, stage.client.served(RESOURCECLAIMS).version)
    now = await stage.claim(claim)
    others = [to_plain(each) for each in now.status.reserved_for]
    await ours.merge_patch(
        RESOURCECLAIMS,
        now.metadata,
        {"status": {"reservedFor": [*others, await reference(stage, "waiting"), *ahead]}},
        subresource="status",
    )
    await foreign(stage, claim, *others, *ahead)


async def using(stage: Stage, claim: str) -> list[Pod]:
    """The pods that name a claim."""
    pods = (await stage.client.list(PODS, NAMESPACE)).items
    return [pod for pod in pods if claim in claim_names(pod)]


async def until_pods(stage: Stage, claim: str, count: int) -> None:
    """Wait until ``count`` pods that name the claim run."""

    async def holds() -> bool:
        pods = await using(stage, claim)
        return len(pods) == count and all(pod.status.phase == "Running" for pod in pods)

    await stage.until(holds, f"{count} pods use {claim}")


async def without_pods(stage: Stage, name: str, *, force: bool = False) -> None:
    async with going(stage, name, force=force):
        await stage.delete(DEPLOYMENTS, name)


@asynccontextmanager
async def going(stage: Stage, claim: str, *, force: bool) -> AsyncIterator[None]:
    """Wait until the pods of the claim are gone; with ``force`` their containers still run."""
    if force:
        await stage.site.pause("kubelet")
    yield
    if force:
        await stage.clock.sleep(1)
        for pod in await using(stage, claim):
            await stage.site.force_delete(pod.metadata.name)
        await stage.site.resume("kubelet")
    await until_pods(stage, claim, 0)


async def tear_away(stage: Stage, reservation: str) -> None:
    """Remove the finalizer by hand and delete the ClaimReservation."""
    await stage.patch(CLAIMRESERVATIONS, reservation, {"metadata": {"finalizers": None}})
    await stage.delete(CLAIMRESERVATIONS, reservation)


async def reference(stage: Stage, deployment: str) -> dict[str, str]:
    uid = (await stage.client.get(DEPLOYMENTS, deployment, NAMESPACE)).metadata.uid
    return {"apiGroup": "apps", "resource": "deployments", "name": deployment, "uid": uid}


def replica_set(name: str) -> dict[str, Any]:
    body = manifests.deployment(name, replicas=0)
    body["spec"].pop("strategy", None)
    return body


async def lists(stage: Stage, name: str = "slice") -> list[list[str]]:
    """Every list that the allocated claim had, without repetitions."""
    found: list[list[str]] = []
    for revision in await stage.site.history():
        if (revision.plural, revision.name) == ("resourceclaims", name):
            status = decode(revision.data, ResourceClaim).status
            shown = [f"{each.resource}/{each.name}" for each in status.reserved_for]
            if status.allocation is not None and found[-1:] != [shown]:
                found.append(shown)
    return found


async def listed(stage: Stage, name: str) -> list[dict[str, str]]:
    return [to_plain(each) for each in (await stage.claim(name)).status.reserved_for]


async def foreign(stage: Stage, name: str, *references: dict[str, str], keep: bool = False) -> None:
    """Write a list as another writer, in place of the entries or (``keep``) beside them."""
    entries = [*(await listed(stage, name) if keep else ()), *references]
    await stage.write_list(entries, name)


class Maker(Protocol):
    """Creates an orphan. With ``force`` the pods vanish while they run."""

    def __call__(
        self, stage: Stage, name: str = "slice", *, force: bool = False
    ) -> Awaitable[None]: ...


MAKERS: dict[str, Maker] = {
    "DeletedButAllocated": deleted_but_allocated,
    "DeadPods": dead_pods,
    "AllocatedToNobody": allocated_to_nobody,
    "DanglingReference": dangling,
    "OrphanedHold": orphaned_hold,
    "OrphanedTombstones": orphaned_tombstones,
    "ListedAhead": listed_ahead,
}
"""By the cause that ``claimctl doctor orphans`` must report."""


@asynccontextmanager
async def judged(
    stage: AbstractAsyncContextManager[Stage], grace: float = 300
) -> AsyncIterator[Stage]:
    """A stage whose witness also judges, at the end, what the administrator did."""
    async with stage as found:
        yield found
        users = frozenset({ADMINISTRATOR, found.site.account})
        least = min(grace, found.scaled(300))
        told = accused(await found.site.history(), users, least)
        assert not told, told


async def until_free(stage: Stage, name: str = "slice") -> None:
    """Wait until the claim is deleted, or not allocated and without the finalizer."""

    async def holds() -> bool:
        gone = await stage.gone(RESOURCECLAIMS, name)
        return gone or await stage.released(name)

    await stage.until(holds, f"{name} is free")
