"""Users of claims: they create, scale, roll out and delete workloads, also by force."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kube_in_process.real.nodes.images import IMAGE

from claimctl.kube.errors import Invalid, KubeError
from claimctl_demo.documents import DocumentClient
from claimctl_demo.story import objects
from claimctl_demo.story.objects import CLAIM, DEPLOYMENT, POD, RESERVATION
from labs.torture.place import tried

NAMESPACE = "team"
_FREE_SECONDS = 40.0
"""How long a run waits at its end. A claim whose pods were force-deleted is held for longer."""
_LOOK_SECONDS = 0.3


@dataclass(slots=True)
class PlayingUsers:
    """Users that play until they are cancelled.

    Attributes:
        hold: whether the claims are reserved.
        done: how often each action was taken.
    """

    client: DocumentClient
    hold: bool
    seed: int
    done: Counter[str] = field(default_factory=Counter)
    claims: int = 0
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when no further claim is to be begun."""
    _left: set[asyncio.Task[None]] = field(default_factory=set)
    """Claims that were given back, and are not free yet."""

    async def play(self, number: int) -> None:
        """One user, with one claim after the other, until ``closing`` is set."""
        rng = Random(f"{self.seed} {number}")
        turn = 0
        while not self.closing.is_set():
            name, turn = f"user-{number}-{turn}", turn + 1
            await self._use(name, rng)
            task = asyncio.create_task(self._give_back(name))
            self._left.add(task)
            task.add_done_callback(self._left.discard)

    async def close(self) -> int:
        """Wait a while until all claims are free; returns how many are not."""
        late: set[asyncio.Task[None]] = set()
        if self._left:
            _, late = await asyncio.wait(self._left, timeout=_FREE_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return len(late)

    async def _use(self, name: str, rng: Random) -> None:
        """The life of one claim, until its workload is deleted."""
        annotated = self.hold and rng.random() < 0.5
        workload = objects.Workload(NAMESPACE, name, name, rng.randrange(1, 4), annotated)
        await tried(self.client.create(objects.claim(NAMESPACE, name)))
        self.claims += 1
        if self.hold:
            reservation = objects.reservation(workload, DEPLOYMENT, idleTimeoutSeconds=5)
            await tried(self.client.create(reservation))
        await tried(self.client.create(_deployment(workload, rng)))
        self.done["create"] += 1
        for _ in range(rng.randrange(5)):
            await asyncio.sleep(rng.uniform(0.2, 3.0))
            await self._act(name, rng)
        await asyncio.sleep(rng.uniform(0.0, 2.0))
        await self._end(name, rng)

    async def _give_back(self, name: str) -> None:
        """Delete a claim once it is free."""
        await self._until_free(name)
        if self.hold:
            await self._delete(RESERVATION, name)
        await self._delete(CLAIM, name)

    async def _act(self, name: str, rng: Random) -> None:
        kind = rng.choice(("scale", "roll out", "delete pods", "force-delete pods"))
        self.done[kind] += 1
        if kind == "scale":
            await self._patch(name, {"replicas": rng.randrange(4)})
        elif kind == "roll out":
            annotations = {"metadata": {"annotations": {"rolled": str(rng.random())}}}
            await self._patch(name, {"template": annotations})
        else:
            await self._delete_pods(name, force=kind == "force-delete pods")

    async def _end(self, name: str, rng: Random) -> None:
        force = rng.random() < 0.6
        self.done["end by force" if force else "end"] += 1
        await self._delete(DEPLOYMENT, name, {"propagationPolicy": "Background"})
        if force:
            await self._delete_pods(name, force=True)

    async def _delete_pods(self, name: str, *, force: bool) -> None:
        options: dict[str, Any] = {"gracePeriodSeconds": 0} if force else {}
        for pod in await self._pods(name):
            await self._delete(POD, pod, options)

    async def _pods(self, name: str) -> list[str]:
        with suppress(KubeError, OSError):
            pods = await self.client.list(POD, NAMESPACE)
            return [
                each["metadata"]["name"]
                for each in pods
                if each["metadata"].get("labels", {}).get("app") == name
            ]
        return []

    async def _until_free(self, name: str) -> None:
        """Wait until no pod is left and the claim is deallocated."""
        while True:
            with suppress(KubeError, OSError):
                claim = await self.client.get(CLAIM, NAMESPACE, name)
                status = claim.get("status") or {}
                if not status.get("allocation") and not await self._pods(name):
                    return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _patch(self, name: str, spec: dict[str, Any]) -> None:
        await tried(self.client.patch(DEPLOYMENT, NAMESPACE, name, {"spec": spec}))

    async def _delete(
        self, kind: tuple[str, str], name: str, options: dict[str, Any] | None = None
    ) -> None:
        try:
            await self.client.delete(kind, NAMESPACE, name, options or {})
        except Invalid:
            # the policy of pod-deletion answers 422
            self.done["refused by pod-deletion"] += 1
        except (KubeError, OSError):
            pass


def _deployment(workload: objects.Workload, rng: Random) -> dict[str, Any]:
    """A Deployment whose containers may ignore SIGTERM."""
    body = objects.deployment(workload)
    body["spec"]["strategy"] = {"type": rng.choice(("Recreate", "RollingUpdate"))}
    spec = body["spec"]["template"]["spec"]
    spec["terminationGracePeriodSeconds"] = rng.choice((2, 5, 15))
    args = ["deaf"] if rng.random() < 0.5 else []
    spec["containers"][0] |= {"image": IMAGE, "imagePullPolicy": "Never", "args": args}
    return body
