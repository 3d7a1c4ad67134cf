"""A downgrade on a busy cluster: pods start, end and are force-deleted while lists are written.

Afterwards the feature goes off in every component, every sandbox is made anew, and the pods end. No
pod is refused, no claim loses its devices before, and every claim is deallocated at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from random import Random

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.options import ClusterOptions, Preset

from claimctl.downgrade import plans
from claimctl.downgrade.look import PREPARE_FAILED
from claimctl.downgrade.records import PlanPhase
from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError, NotFound
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import DowngradePlanSpec
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    PODS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
)
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import NAMESPACE, Stage

CLAIMS, MOST = 6, 6
"""How many claims there are, and how many pods each of them has at most."""
NATIVE = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=1, devices_per_node=CLAIMS)
PODGROUP = replace(NATIVE, preset=Preset.POD_GROUPS)
both = pytest.mark.parametrize(
    "options",
    [
        pytest.param(NATIVE, marks=pytest.mark.cluster(NATIVE), id="native"),
        pytest.param(PODGROUP, marks=pytest.mark.cluster(PODGROUP), id="podgroup"),
    ],
)


@dataclass(frozen=True, slots=True)
class Busy:
    """A cluster with many claims whose pods come and go."""

    stage: Stage
    rng: Random

    @property
    def names(self) -> list[str]:
        return [f"train-{number}" for number in range(CLAIMS)]

    async def furnish(self) -> None:
        native = self.stage.embedded.options.preset is Preset.RESERVED_FOR_ANY_POD
        if native:
            await self.stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
        for name in self.names:
            body = manifests.deployment(name, MOST // 2, name)
            if native:
                made = manifests.reservation(
                    name, workload=name, claim=name, resourceClaimTemplateName="template"
                )
            else:
                await self.stage.create(RESOURCECLAIMS, manifests.claim(name))
                made = manifests.reservation(name, workload=name, claim=name)
                manifests.in_group(body, name)
            await self.stage.create(DEPLOYMENTS, body)
            await self.stage.create(CLAIMRESERVATIONS, made)
        await self.stage.until_running(CLAIMS * MOST // 2)

    @asynccontextmanager
    async def churn(self) -> AsyncIterator[None]:
        """Change something several times a second."""
        task = asyncio.create_task(self._churn())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()

    async def _churn(self) -> None:
        while True:
            await self.stage.clock.sleep(self.rng.uniform(0.05, 0.4))
            name = self.rng.choice(self.names)
            match self.rng.randrange(4):
                case 0 | 1:
                    spec = {"replicas": self.rng.randint(1, MOST)}
                    await self.stage.patch(DEPLOYMENTS, name, {"spec": spec})
                case 2:
                    await self._delete(name, force=False)
                case _:
                    await self._delete(name, force=True)

    async def _delete(self, name: str, *, force: bool) -> None:
        pods = [pod for pod in await self.pods() if pod.metadata.name.startswith(f"{name}-")]
        if len(pods) > 1:  # with no pod left, the claim would be held idle, and block
            chosen = self.rng.choice(pods).metadata.name
            try:
                if force:
                    self.stage.embedded.force_delete(NAMESPACE, chosen)
                else:
                    await self.stage.client.delete(PODS, chosen, NAMESPACE)
            except (StatusError, NotFound):
                return

    async def pods(self) -> tuple[Pod, ...]:
        return (await self.stage.client.list(PODS, NAMESPACE)).items

    async def claims(self) -> tuple[ResourceClaim, ...]:
        return (await self.stage.client.list(RESOURCECLAIMS, NAMESPACE)).items

    def switch(self, **gates: bool) -> None:
        embedded = self.stage.embedded
        embedded.switch(replace(embedded.features, **gates))  # type: ignore[arg-type]  # gates

    async def until_quiet(self) -> None:
        """Wait until the Deployments have the pods that they want, and all of them run."""

        async def quiet() -> bool:
            deployments = self.stage.embedded.admin.list("deployments", NAMESPACE)
            wanted: int = sum(each["spec"]["replicas"] for each in deployments)
            pods = await self.pods()
            return len(pods) == wanted == len(await self.stage.running())

        await self.stage.until(quiet, "all pods run", 120)

    async def expect_exactly_the_pods(self) -> None:
        """Every bound pod is listed, and nothing else is."""
        pods = await self.pods()
        for claim in await self.claims():
            name = claim.metadata.name
            alive = {
                pod.metadata.uid
                for pod in pods
                if pod.spec.node_name and pod.metadata.name.startswith(f"{name}-")
            }
            assert {each.uid for each in claim.status.reserved_for} == alive, name


async def prepared(stage: Stage) -> str:
    plan = await plans.begin(stage.client, DowngradePlanSpec())
    return (await plans.follow(stage.client, plan, lambda _: None, patience_seconds=600)).phase


async def off(busy: Busy) -> None:
    """Switch the feature off in the order of the runbook, and lose every sandbox."""
    busy.switch(scheduler_pod_groups=False, kcm_pod_groups=False, scheduler_reserved_for=False)
    await busy.until_quiet()
    assert await prepared(busy.stage) == PlanPhase.PREPARED
    await busy.expect_exactly_the_pods()
    busy.switch(kubelet_pod_groups=False, kubelet_reserved_for=False)
    busy.switch(api_pod_groups=False, api_reserved_for=False)
    busy.stage.embedded.reboot_node("node-0")
    await busy.stage.clock.sleep(5)
    await busy.until_quiet()
    refused = [
        each["note"]
        for each in busy.stage.embedded.admin.list("events", NAMESPACE)
        if each["reason"] == PREPARE_FAILED
    ]
    assert refused == []


async def until_all_are_free(busy: Busy) -> None:
    """Let the pods end; every claim is deallocated."""
    for name in busy.names:
        await busy.stage.patch(DEPLOYMENTS, name, {"spec": {"replicas": 0}})

    async def free() -> bool:
        return all(each.status.allocation is None for each in await busy.claims())

    await busy.stage.until(free, "every claim is deallocated", 1200)


async def devices(busy: Busy) -> dict[str, object]:
    return {each.metadata.name: each.status.allocation for each in await busy.claims()}


@both
async def test_a_busy_cluster(stage: Stage, options: ClusterOptions) -> None:
    busy = Busy(stage, Random(1))
    await stage.started()
    await busy.furnish()
    before = await devices(busy)
    async with busy.churn():
        await prepared(stage)
        await stage.clock.sleep(10)
    await off(busy)
    assert await devices(busy) == before
    await until_all_are_free(busy)


@pytest.mark.parametrize(
    ("options", "write"),
    [
        pytest.param(options, write, marks=pytest.mark.cluster(options))
        for write, options in zip(range(1, 11), 5 * (NATIVE, PODGROUP), strict=True)
    ],
)
async def test_it_is_killed_and_another_run_goes_on(
    stage: Stage, options: ClusterOptions, write: int
) -> None:
    """The process that carries the plan out dies at a write, delivered or not."""
    busy = Busy(stage, Random(write))
    await stage.started()
    await busy.furnish()
    before = await devices(busy)
    await stage.stop()
    async with busy.churn():
        dying = DyingTransport(stage.connect(), write, delivered=write % 4 < 2)
        plan = await plans.begin(stage.client, DowngradePlanSpec())
        dying.arm()
        with pytest.raises((KubeError, ConnectionError)):
            await plans.carry_out(Client(dying, stage.clock), plan, stage.clock, lambda _: None)
        assert dying.dead.is_set()
        await stage.started()
        await prepared(stage)
    await off(busy)
    assert await devices(busy) == before
    await until_all_are_free(busy)


@both
async def test_two_commands_at_once(stage: Stage, options: ClusterOptions) -> None:
    busy = Busy(stage, Random(2))
    await stage.started()
    await busy.furnish()
    before = await devices(busy)
    await stage.stop()
    async with busy.churn():
        plan = await plans.begin(stage.client, DowngradePlanSpec())
        found = await asyncio.gather(
            *(plans.carry_out(stage.client, plan, stage.clock, lambda _: None) for _ in range(2)),
            return_exceptions=True,
        )
        assert not [each for each in found if isinstance(each, StatusError)]
        await stage.started("two")
        await prepared(stage)
    await off(busy)
    assert await devices(busy) == before
    await until_all_are_free(busy)
