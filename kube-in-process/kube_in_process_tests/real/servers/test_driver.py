"""The stand-in for a driver, as stand-ins for kubelets call it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from kube_in_process.habits.presence import Slow
from kube_in_process.real.servers.driver import StandInDriver
from kube_in_process.real.servers.nodes import Fleet

Object = dict[str, Any]
Objects = list[Object]
Names = list[str]
FLEET = Fleet((1, 36), count=2, devices=2)
REFERENCE = {"resource": "pods", "name": "p1", "uid": "uid-p1"}
HOLD = {"apiGroup": "apps", "resource": "deployments", "name": "work", "uid": "uid-work"}


class KeptDocuments:
    """A client that keeps slices, and has the claims that it is given."""

    def __init__(self) -> None:
        self.claims: Objects = []
        self.slices: Objects = [
            {
                "metadata": {"name": f"{node}-{FLEET.driver}-0"},
                "spec": {
                    "driver": FLEET.driver,
                    "nodeName": node,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "dev-0"}, {"name": "dev-1"}],
                },
            }
            for node in FLEET.names
        ]

    async def list(self, kind: tuple[str, str]) -> Objects:
        return copy.deepcopy(self.claims if kind[1] == "ResourceClaim" else self.slices)

    async def patch(self, kind: object, space: str, name: str, patch: Object) -> None:
        (stored,) = [body for body in self.slices if body["metadata"]["name"] == name]
        stored["spec"] |= patch["spec"]

    def published(self, node: str = "node-0") -> tuple[int, Names]:
        (spec,) = [body["spec"] for body in self.slices if body["spec"]["nodeName"] == node]
        return spec["pool"]["generation"], [device["name"] for device in spec["devices"]]


def claim(*listed: Object, driver: str = FLEET.driver) -> Object:
    results = [{"driver": driver, "pool": "node-0", "device": "dev-0", "request": "gpu"}]
    return {
        "metadata": {"namespace": "team", "name": "c", "uid": "uid-c"},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": list(listed)},
    }


def pod(name: str, node: str = "node-0") -> Object:
    meta = {"namespace": "team", "name": name, "uid": f"uid-{name}"}
    return {"metadata": meta, "spec": {"nodeName": node}}


@pytest.fixture
def documents() -> KeptDocuments:
    return KeptDocuments()


@pytest.fixture
def driver(documents: KeptDocuments) -> StandInDriver:
    client: Any = documents
    return StandInDriver(client, FLEET)


def verbs(driver: StandInDriver) -> list[str]:
    return [call.verb for call in driver.calls]


async def test_it_is_asked_for_the_first_pod_on_a_node_and_after_the_last(
    driver: StandInDriver,
) -> None:
    one, two, far = pod("p1"), pod("p2"), pod("p3", "node-1")
    for asked in (one, two, far):
        assert driver.prepare(asked, claim(REFERENCE)) == ""
    assert driver.prepared == [("team/c", "node-0"), ("team/c", "node-1")]
    assert driver.unprepare(one) == ""
    assert verbs(driver) == ["prepare", "prepare"]
    assert driver.unprepare(two) == ""
    assert verbs(driver) == ["prepare", "prepare", "unprepare"]
    assert driver.prepared == [("team/c", "node-1")]


async def test_a_claim_of_another_driver_is_not_its_business(driver: StandInDriver) -> None:
    await driver.take_up("wants-one-pod")
    assert driver.prepare(pod("p1"), claim(HOLD, driver="other")) == ""
    assert verbs(driver) == []


async def test_its_habits_are_those_of_every_driver(driver: StandInDriver) -> None:
    await driver.take_up("wants-one-pod", Slow(prepare_seconds=3.0))
    both = claim(REFERENCE, HOLD)
    assert driver.seconds(pod("p1"), both) == 3.0
    text = "driver only supports one pod per claim, got 2"
    refused = f"NodePrepareResources failed for ResourceClaim c: {text}"
    assert driver.prepare(pod("p1"), both) == refused
    assert [call.error for call in driver.calls] == [text]
    await driver.drop("wants-one-pod")
    assert driver.prepare(pod("p1"), both) == ""
    assert driver.seconds(pod("p2"), both) == 0.0
    await driver.take_up("refuses-a-second-pod")
    assert "already bound to pod" in driver.prepare(pod("p2"), both)
    driver.unprepare(pod("p1"))
    assert driver.prepare(pod("p2"), both) == ""


async def test_a_driver_that_is_away_is_not_registered(driver: StandInDriver) -> None:
    await driver.leave("node-0")
    text = f"DRA driver {FLEET.driver} is not registered"
    assert text in driver.prepare(pod("p1"), claim(REFERENCE))
    assert driver.prepare(pod("p2", "node-1"), claim(REFERENCE)) == ""
    await driver.leave()
    assert driver.unprepare(pod("p2", "node-1")) == text
    await driver.come_back()
    assert driver.unprepare(pod("p2", "node-1")) == ""


@pytest.mark.parametrize("listed", [[REFERENCE], [REFERENCE, HOLD]])
async def test_a_driver_that_comes_back_has_been_restarted(
    driver: StandInDriver, documents: KeptDocuments, listed: list[Object]
) -> None:
    await driver.take_up("restores-claims-with-one-entry")
    driver.prepare(pod("p1"), claim(REFERENCE))
    documents.claims = [claim(*listed)]
    await driver.leave()
    await driver.come_back()
    assert driver.prepared == ([("team/c", "node-0")] if len(listed) == 1 else [])


async def test_a_reboot_asks_for_a_prepare(driver: StandInDriver) -> None:
    await driver.take_up("skips-checkpointed-claims")
    driver.prepare(pod("p1"), claim(REFERENCE))
    driver.fleet.boots["node-0"] = 1
    driver.boot("node-0")
    assert driver.prepared == []
    assert "PrepareCompleted" in driver.prepare(pod("p1"), claim(REFERENCE))
    driver.fleet.boots.clear()


async def test_it_publishes_what_its_habits_say(
    driver: StandInDriver, documents: KeptDocuments
) -> None:
    await driver.take_up("fewer-devices")
    assert documents.published() == (2, ["dev-1"])
    assert "not allocatable: dev-0" in driver.prepare(pod("p1"), claim(REFERENCE))
    await driver.drop()
    assert documents.published() == (3, ["dev-0", "dev-1"])
    await driver.publish("node-0", ["dev-0", "new"])
    assert documents.published() == (4, ["dev-0", "new"])
    await driver.take_up("hides-used-devices")
    driver.prepare(pod("p1"), claim(REFERENCE))
    await driver.offer()
    assert documents.published()[1] == ["new"]
    assert documents.published("node-1") == (3, ["dev-0", "dev-1"])
