"""Many claims whose pods start, end and are force-deleted while something else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

from kube_in_process.errors import StatusError
from kube_in_process.options import Preset

from claimctl.kube.errors import NotFound
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.coordination import PREPARE_FAILED
from claimctl.wire.pods import Pod
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    EVENTS,
    PODS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
)
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE, Stage


@dataclass(frozen=True, slots=True)
class Busy:
    """A cluster with many claims whose pods come and go.

    Attributes:
        claim_count: how many claims there are.
        most: how many pods each of them has at most; half of them at first.
    """

    stage: Stage
    rng: Random
    claim_count: int = 6
    most: int = 6

    @property
    def names(self) -> list[str]:
        return [f"train-{number}" for number in range(self.claim_count)]

    async def furnish(self) -> None:
        native = self.stage.site.dialect is Preset.RESERVED_FOR_ANY_POD
        if native:
            await self.stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
        for name in self.names:
            body = manifests.deployment(name, self.most // 2, name)
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
        await self.stage.until_running(self.claim_count * self.most // 2)

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
                    spec = {"replicas": self.rng.randint(1, self.most)}
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
                    await self.stage.site.force_delete(chosen)
                else:
                    await self.stage.client.delete(PODS, chosen, NAMESPACE)
            except (StatusError, NotFound):
                return

    async def pods(self) -> tuple[Pod, ...]:
        return (await self.stage.client.list(PODS, NAMESPACE)).items

    async def claims(self) -> tuple[ResourceClaim, ...]:
        return (await self.stage.client.list(RESOURCECLAIMS, NAMESPACE)).items

    async def until_quiet(self) -> None:
        """Wait until the Deployments have the pods that they want, and all of them run."""

        async def quiet() -> bool:
            deployments = (await self.stage.client.list(DEPLOYMENTS, NAMESPACE)).items
            wanted = sum(deployment.spec.replicas or 0 for deployment in deployments)
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
            assert {entry.uid for entry in claim.status.reserved_for} == alive, name

    async def devices(self) -> dict[str, object]:
        """The allocation of every claim, by its name."""
        return {claim.metadata.name: claim.status.allocation for claim in await self.claims()}

    async def refusals(self) -> list[str]:
        """What kubelets said about pods that they refused."""
        events = (await self.stage.client.list(EVENTS, NAMESPACE)).items
        return [event.note for event in events if event.reason == PREPARE_FAILED]
