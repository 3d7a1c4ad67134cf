"""Pods that start, end and are force-deleted while a command works, and what the lists say then.

The cluster is played, too: the scheduler lists a pod if the claim lists nothing that lets it in,
and kube-controller-manager (KCM) removes the entries of pods that have ended or are gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kube_in_process.cluster import Cluster
from kube_in_process.storage.store import Address, Author

MOST = 200
"""The greatest number of pods of a claim."""
CLAIMS = ("resource.k8s.io", "resourceclaims")
Body = dict[str, Any]


@dataclass
class Churn:
    """The pods of many claims.

    Attributes:
        claims: the number of claims; claim N is called ``slice-N``.
        pods: the number of pods of each claim at the beginning.
        make: makes the pod of a claim with a number.
        actions: how many pods have started, ended or were force-deleted.
    """

    cluster: Cluster
    claims: int
    pods: int
    make: Callable[[int, int], Body]
    rng: Random = field(default_factory=lambda: Random(0))
    actions: int = 0
    _living: list[dict[str, str]] = field(default_factory=list)
    """By claim: the UIDs of the pods that run, by name."""
    _born: int = 0

    def __post_init__(self) -> None:
        for claim in range(self.claims):
            first = (self.make(claim, place)["metadata"] for place in range(self.pods))
            self._living.append({each["name"]: each["uid"] for each in first})
        self._born = self.pods

    async def run(self, rate: float) -> None:
        """Do something ``rate`` times a second until cancelled."""
        while True:
            self.step()
            await asyncio.sleep(1 / rate)

    def step(self) -> None:
        claim, what = self.rng.randrange(self.claims), self.rng.randrange(4)
        living = self._living[claim]
        if what < 2 and len(living) < MOST:
            self._start(claim)
        elif len(living) > 2:
            self._leave(claim, self.rng.choice(sorted(living)), ended=what == 2)
        self.actions += 1

    def _start(self, claim: int) -> None:
        self._born += 1
        body = self.make(claim, self._born)
        meta = body["metadata"]
        entry = {"resource": "pods", "name": meta["name"], "uid": meta["uid"]}
        listed = self._list(claim)
        if all(each["resource"] == "pods" for each in listed):
            self._write(claim, [*listed, entry])
        self._put("", "pods", body)
        self._living[claim][meta["name"]] = meta["uid"]

    def _leave(self, claim: int, name: str, *, ended: bool) -> None:
        address = Address("", "pods", "work", name)
        if ended:
            body = self.cluster.store.get(address)
            assert body is not None
            self._put("", "pods", {**body, "status": _ended(body["status"])})
        else:
            self.cluster.store.delete(address, Author("bench", "delete"))
        del self._living[claim][name]
        self._clean(claim)

    def settle(self) -> None:
        """Let KCM look at every claim, as it does when a claim changes."""
        for claim in range(self.claims):
            self._clean(claim)

    def _clean(self, claim: int) -> None:
        listed, running = self._list(claim), set(self._living[claim].values())
        left = [each for each in listed if each["resource"] != "pods" or each["uid"] in running]
        if left != listed:
            self._write(claim, left)

    def _claim(self, claim: int) -> Body:
        found = self.cluster.store.get(Address(*CLAIMS, "work", f"slice-{claim}"))
        assert found is not None
        return found

    def _list(self, claim: int) -> list[Body]:
        return list(self._claim(claim)["status"].get("reservedFor") or ())

    def _write(self, claim: int, listed: list[Body]) -> None:
        body = self._claim(claim)
        self._put(*CLAIMS, {**body, "status": {**body["status"], "reservedFor": listed}})

    def _put(self, group: str, plural: str, body: Body) -> None:
        address = Address(group, plural, "work", body["metadata"]["name"])
        self.cluster.store.put(address, body, Author("bench", "update"))

    def wrong(self) -> list[str]:
        """The claims that do not list exactly the pods that run, or lost their devices."""
        return [text for claim in range(self.claims) for text in self._wrong(claim)]

    def _wrong(self, claim: int) -> Iterator[str]:
        status, name = self._claim(claim)["status"], f"slice-{claim}"
        listed = {each["uid"] for each in status.get("reservedFor") or ()}
        running = set(self._living[claim].values())
        if not status.get("allocation"):
            yield f"{name}: not allocated"
        if listed - running:
            yield f"{name}: {len(listed - running)} entries that are no running pods"
        if running - listed:
            yield f"{name}: {len(running - listed)} running pods are not listed"


def _ended(status: Body) -> Body:
    """The status that the kubelet reports after the containers have ended."""
    over = {"terminated": {"exitCode": 0}}
    containers = [{**each, "ready": False, "state": over} for each in status["containerStatuses"]]
    return {**status, "phase": "Succeeded", "containerStatuses": containers}
