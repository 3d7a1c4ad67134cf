"""Kill kubelets, the driver and claimctl at random moments, and start them again."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from kube_in_process.real.nodes.cluster import NodeCluster
from kube_in_process.real.nodes.drivers import DriverProcess

from labs.torture_real.controllers import Controllers

KINDS = ("kubelet", "driver", "claimctl")
"""What is killed."""
_REPLICAS = ("one", "two")


@dataclass(slots=True)
class Killer:
    """Kills of what is in ``kinds``, one after the other."""

    cluster: NodeCluster
    driver: DriverProcess
    controllers: Controllers | None
    kinds: tuple[str, ...]
    seed: int
    done: Counter[str] = field(default_factory=Counter)

    async def play(self) -> None:
        """Kill until cancelled."""
        rng = Random(f"{self.seed} kills")
        possible = [
            kind for kind in self.kinds if kind != "claimctl" or self.controllers is not None
        ]
        while possible:
            await asyncio.sleep(rng.uniform(2.0, 9.0))
            kind, away = rng.choice(possible), rng.uniform(0.5, 6.0)
            self.done[kind] += 1
            # A process that is being started again must not be left dead by a cancellation.
            await asyncio.shield(asyncio.ensure_future(self._kill(kind, away, rng)))

    async def _kill(self, kind: str, away: float, rng: Random) -> None:
        if kind == "kubelet":
            node = rng.choice(self.cluster.nodes)
            node.kill_kubelet()
            await asyncio.sleep(away)
            node.start_kubelet()
        elif kind == "driver":
            self.driver.server.kill()
            await asyncio.sleep(away)
            self.driver.server.start()
        elif self.controllers is not None:
            name = rng.choice(_REPLICAS)
            self.controllers.kill(name)
            await asyncio.sleep(away)
            self.controllers.start(name)


def start_replicas(controllers: Controllers) -> None:
    for name in _REPLICAS:
        controllers.start(name)
