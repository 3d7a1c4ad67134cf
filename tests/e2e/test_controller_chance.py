"""Random events from a seed: no promise is ever broken, and nothing leaks."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest
from kube_in_process.options import ClusterOptions

from claimctl.kube.errors import NotFound
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    PODS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
)
from tests.e2e import manifests
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import HOLD_136, NATIVE, NewStage, Stage

STEPS = 25
GRACE = 20


@dataclass
class Chance:
    """Random actions of users, nodes and controllers."""

    stage: Stage
    rng: random.Random
    generation: int = 0
    transport: DyingTransport | None = None

    def start_controller(self) -> None:
        self.generation += 1
        dies_at = self.rng.randint(1, 40)
        self.transport = DyingTransport(self.stage.connect(), dies_at)
        self.transport.arm()
        self.stage.manager(f"c{self.generation}", self.transport)

    async def replace_dead_controller(self) -> None:
        if self.transport is not None and self.transport.dead.is_set():
            await self.stage.kill(f"c{self.generation}")
            self.start_controller()

    async def scale(self) -> None:
        await self.stage.patch(
            DEPLOYMENTS, "train", {"spec": {"replicas": self.rng.choice([0, 0, 1, 2, 5])}}
        )

    async def force_delete(self) -> None:
        if running := await self.stage.running():
            pod = self.rng.choice(running)
            await self.stage.site.force_delete(pod.metadata.name)

    async def delete_pod(self) -> None:
        if running := await self.stage.running():
            await self.stage.delete(PODS, self.rng.choice(running).metadata.name)

    async def recreate(self) -> None:
        await self.stage.delete(DEPLOYMENTS, "train")
        await self.stage.clock.sleep(self.rng.choice([0.0, 0.5, 3.0]))
        await self.stage.create(DEPLOYMENTS, manifests.deployment(replicas=2))

    async def cordon(self) -> None:
        node = self.stage.site.nodes[self.rng.randrange(3)]
        await self.stage.cordon(node, unschedulable=self.rng.random() < 0.5)

    async def lag(self) -> None:
        await self.stage.site.set_lag(self.rng.choice([0.0, 0.5, 2.0]))

    async def step(self) -> None:
        deeds: list[Callable[[], Awaitable[None]]] = [
            *[self.scale] * 5,
            *[self.delete_pod] * 2,
            self.force_delete,
            self.recreate,
            self.cordon,
            self.lag,
        ]
        try:
            await self.rng.choice(deeds)()
        except NotFound:
            return
        await self.stage.clock.sleep(self.rng.choice([0.01, 0.1, 0.3, 1.0, 4.0, 12.0]))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("options", [NATIVE, HOLD_136], ids=["native", "hold"])
async def test_whatever_happens(new_stage: NewStage, options: ClusterOptions, seed: int) -> None:
    async with new_stage(replace(options, seed=seed)) as stage:
        chance = Chance(stage, random.Random(seed))
        chance.start_controller()
        await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
        await stage.create(DEPLOYMENTS, manifests.deployment(replicas=2))
        body = manifests.reservation(
            resourceClaimTemplateName="template",
            idleTimeoutSeconds=1,
            forceDeletedPodGraceSeconds=GRACE,
            reallocateTimeoutSeconds=5,
        )
        await stage.create(CLAIMRESERVATIONS, body)
        for _ in range(STEPS if stage.cluster is not None else STEPS // 2):
            await chance.step()
            await chance.replace_dead_controller()
        await stage.site.set_lag(0.0)
        await stage.delete(DEPLOYMENTS, "train")
        await stage.kill(f"c{chance.generation}")
        await stage.started("last")
        await stage.until(lambda: given_back(stage), "the claim is given back", within=200)


async def given_back(stage: Stage) -> bool:
    """Released, or gone: a claim made for an earlier incarnation makes way and is not replaced."""
    return await stage.gone(RESOURCECLAIMS, "slice") or await stage.released()
