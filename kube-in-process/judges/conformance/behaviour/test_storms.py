"""Traces of which only figures are kept: many pods on one claim."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.storage.requests import Fault, FaultPoint

from .replay import options, publish
from .trace import load

CLOCK = LoopClock(EPOCH)
STORMS = ["B10-conflict-storm", "B10-conflict-storm-v1.34"]


class Many:
    """A Deployment whose pods share a claim, on a cluster that plays the storm."""

    def __init__(self, name: str, *, storm: bool) -> None:
        self.trace = load(name)
        self.cluster = Cluster(options(self.trace, conflict_storm=storm), CLOCK)
        self.attempts: Counter[str] = Counter()

    async def start(self) -> None:
        await self.cluster.start()
        publish(self.cluster, "tpu", ["dev-0"])
        self.cluster.fault_components(self._count)
        for action in self.trace.actions[:2]:
            plural = action.request["path"].rpartition("/")[2]
            body = action.request["body"]
            self.cluster.admin.create(plural, body, "default")

    def _count(self, point: FaultPoint) -> Fault | None:
        if (point.plural, point.verb) == ("resourceclaims", "update"):
            self.attempts[point.subresource] += 1
        return None

    def pods(self) -> list[dict[str, Any]]:
        return list(self.cluster.admin.list("pods", "default"))

    def bound(self) -> int:
        return sum(1 for pod in self.pods() if pod["spec"].get("nodeName"))

    def listed(self) -> int:
        claim = self.cluster.admin.get("resourceclaims", "default", "shared")
        return len(claim["status"].get("reservedFor") or ())

    def messages(self) -> set[str]:
        events = self.cluster.admin.list("events", "default")
        return {event["message"] for event in events if event["reason"] == "FailedScheduling"}


@pytest.mark.parametrize("name", STORMS)
async def test_sixty_pods_on_one_claim_conflict_for_half_a_minute(name: str) -> None:
    """As many conflicts, for as long, within a factor of about two."""
    many = Many(name, storm=True)
    series = many.trace.raw["up"]["series"]
    conflicts = many.trace.raw["up"]["requestsOnClaims"]["PUT resourceclaims/status 409"]

    await many.start()
    elapsed = 0.0
    while many.bound() < 60:
        await CLOCK.sleep(0.5)
        elapsed += 0.5
    await many.cluster.stop()

    assert series[-1]["t"] / 2 < elapsed < series[-1]["t"] * 2
    assert many.attempts[""] == 1
    assert conflicts / 2 < many.attempts["status"] - 60 < conflicts * 2
    assert many.listed() == 60
    for sample in many.trace.raw["up"]["sampleMessages"]:
        assert sample.replace(_namespace(many), "default") in many.messages()


async def test_256_of_260_pods_are_listed_and_a_new_one_may_take_a_place_that_becomes_free() -> (
    None
):
    many = Many("B13-more-than-256-pods", storm=False)
    await many.start()
    await CLOCK.sleep(5)
    assert (len(many.pods()), many.bound(), many.listed()) == (260, 256, 256)
    waiting = [pod for pod in many.pods() if not pod["spec"].get("nodeName")]
    theirs = many.trace.raw["podsThatWait"][0]["conditions"][0]
    for pod in waiting:
        (ours,) = pod["status"]["conditions"]
        texts = {key: ours[key] for key in ("reason", "message", "observedGeneration")}
        assert texts["message"] == theirs["message"].replace(_namespace(many), "default")
        assert (texts["reason"], texts["observedGeneration"]) == ("SchedulerError", 1)
    bound = next(pod for pod in many.pods() if pod["spec"].get("nodeName"))
    many.cluster.force_delete("default", bound["metadata"]["name"])
    await CLOCK.sleep(40)
    assert (len(many.pods()), many.bound(), many.listed()) == (260, 256, 256)
    await many.cluster.stop()


def _namespace(many: Many) -> str:
    path: str = many.trace.actions[0].request["path"]
    return path.split("/namespaces/")[1].split("/")[0]
