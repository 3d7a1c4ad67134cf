"""What explain and doctor say when a held device, its driver or its node is not there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from kube_in_process.components.drivers.driver import Driver
from kube_in_process.habits.preparing import FailsToPrepare
from kube_in_process.habits.publishing import TaintsNoSchedule

from claimctl.commands.claims.explanation import explain
from claimctl.commands.claims.get_work import ClaimsWanted, gather
from claimctl.commands.claims.pod_explanation import explain_pod
from claimctl.commands.claims.workload_explanation import explain_workload
from claimctl.commands.doctor.diagnosis import diagnosis
from claimctl.commands.doctor.examination import examine
from claimctl.commands.tree import drawing
from claimctl.commands.tree.graph import document
from claimctl.commands.tree.work import read
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, NODES, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.support.explained import claim_lines, pod_lines, workload_lines

pytestmark = pytest.mark.cluster(HOLD_136)

REFUSED = "FailedPrepareDynamicResources"
WELL = "Nothing is wrong"


@dataclass(frozen=True, slots=True)
class DevicePlace:
    """A held device, and the driver and node that it is of."""

    stage: Stage
    driver: Driver
    node: str
    device: str


async def held(stage: Stage, **spec: Any) -> DevicePlace:
    """A Deployment (Recreate) that holds a device, and whose pod runs."""
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    settings: dict[str, Any] = {"idleTimeoutSeconds": 3600, **spec}
    await stage.create(CLAIMRESERVATIONS, manifests.reservation(**settings))
    body = manifests.deployment()
    body["spec"]["strategy"] = {"type": "Recreate"}
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved")
    (device,) = (await stage.claim()).devices
    (pod,) = await stage.running()
    driver = stage.embedded.driver(device.driver)
    return DevicePlace(stage, driver, pod.spec.node_name, device.device)


async def scaled(stage: Stage, replicas: int) -> None:
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})

    async def done() -> bool:
        return len((await stage.client.list(PODS, NAMESPACE)).items) == replicas

    await stage.until(done, f"there are {replicas} pods")


async def told(stage: Stage) -> dict[str, str]:
    """What each command says, by its name; what doctor says of held devices."""
    client, clock = stage.client, stage.clock
    claim = claim_lines(await explain(client, NAMESPACE, "slice", clock.now()))
    workload = await explain_workload(client, NAMESPACE, "Deployment", "train", clock)
    found = diagnosis(await examine(client, clock))
    tree = await read(client, NAMESPACE, clock.now())
    views = await gather(client, clock.now(), ClaimsWanted(NAMESPACE))
    said = {
        "get": [str(matter) for view in views for matter in view.matters],
        "tree": drawing.problem_lines(document(tree, NAMESPACE).problems, NAMESPACE),
        "claim": claim,
        "deployment": workload_lines(workload),
        "doctor": [each.message for each in found if each.check == "held-devices"],
    }
    for pod in (await client.list(PODS, NAMESPACE)).items:
        explained = await explain_pod(client, NAMESPACE, pod.metadata.name, clock)
        said["pod"] = pod_lines(explained)
    return {name: "\n".join(lines) for name, lines in said.items()}


def nobody_is_calmed(said: dict[str, str], *words: str) -> None:
    """No output says that nothing is wrong; each says these words, but for doctor's Events."""
    for name, text in said.items():
        assert WELL not in text, text
        for word in words:
            assert word in text, (name, text)


async def test_a_healthy_held_claim_is_still_well(stage: Stage) -> None:
    place = await held(stage)
    said = await told(stage)
    assert said.pop("doctor") == "every held device is published, and its node takes pods"
    assert (said.pop("get"), said.pop("tree")) == ("", "")
    assert all(WELL in text for text in said.values())
    await scaled(stage, 0)
    assert WELL in (await told(stage))["claim"]
    assert place.driver.prepared == []


async def gone(place: DevicePlace) -> None:
    place.driver.publish(place.node, [])


async def tainted(place: DevicePlace) -> None:
    place.driver.take_up(
        TaintsNoSchedule(node=place.node, devices=(place.device,), key="example.com/broken")
    )


async def withdrawn(place: DevicePlace) -> None:
    place.driver.withdraw(place.node)


async def cordoned(place: DevicePlace) -> None:
    await place.stage.cordon(place.node)


async def silent(place: DevicePlace) -> None:
    conditions = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    place.stage.embedded.admin.patch(
        "nodes", "", place.node, {"status": {"conditions": conditions}}, "status"
    )


Spoil = Callable[[DevicePlace], Awaitable[None]]
SPOILED = pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (gone, "does not publish it any more"),
        (tainted, "taints it with example.com/broken"),
        (withdrawn, "it may be away"),
        (cordoned, "it is cordoned"),
        (silent, "is not ready"),
    ],
    ids=["gone", "tainted", "withdrawn", "cordoned", "silent"],
)


@SPOILED
@pytest.mark.parametrize("replicas", [1, 0], ids=["in use", "idle"])
async def test_what_is_not_there_is_said_in_place_of_well(
    stage: Stage, spoil: Spoil, words: str, replicas: int
) -> None:
    place = await held(stage, reallocateTimeoutSeconds=None)
    await scaled(stage, replicas)
    await spoil(place)
    nobody_is_calmed(await told(stage), words)


async def test_pods_that_wait_for_a_node_that_is_gone_are_led_to_release(stage: Stage) -> None:
    place = await held(stage, reallocateTimeoutSeconds=None)
    await scaled(stage, 0)
    await stage.client.delete(NODES, place.node)
    await scaled(stage, 1)
    await stage.quiet(10)
    said = await told(stage)
    for name in ("get", "tree", "claim", "deployment", "doctor"):
        assert "1 pod waits since 2026-03-01T12:00:" in said[name]
    assert "does not exist any more" in said.pop("get")
    assert "claimctl explain slice" in said.pop("tree")
    nobody_is_calmed(
        said,
        f"node {place.node}",
        "so claimctl never gives the claim up",
        f"claimctl release slice -n {NAMESPACE}",
    )


async def test_pods_that_wait_for_a_cordoned_node_are_led_to_uncordon(stage: Stage) -> None:
    place = await held(stage, reallocateTimeoutSeconds=None)
    await scaled(stage, 0)
    await stage.cordon(place.node)
    await scaled(stage, 1)
    await stage.quiet(10)
    said = await told(stage)
    assert "is cordoned" in said.pop("get")
    assert "is cordoned" in said.pop("tree")
    nobody_is_calmed(said, f"kubectl uncordon {place.node}", "reallocationPolicy is Never")
    await stage.cordon(place.node, unschedulable=False)
    await stage.until_running(1)


def away(place: DevicePlace) -> None:
    place.driver.leave()


def refuses(place: DevicePlace) -> None:
    place.driver.take_up(FailsToPrepare(text="the GPU has fallen off the bus"))


def wants_one_pod(place: DevicePlace) -> None:
    place.driver.take_up("wants-one-pod")


@pytest.mark.parametrize(
    ("habit", "words"),
    [
        (away, "Start driver gpu.example.com on node"),
        (refuses, "Correct what the driver says above; the kubelet tries again"),
        (wants_one_pod, "claimctl takes the hold out of the claim's list"),
    ],
)
async def test_a_warning_of_the_kubelet_has_its_step(
    stage: Stage, habit: Callable[[DevicePlace], None], words: str
) -> None:
    place = await held(stage)
    await scaled(stage, 0)
    habit(place)
    await scaled(stage, 1)
    await stage.until_event(REFUSED)
    said = await told(stage)
    del said["doctor"]  # its check refused-pods has the Events
    nobody_is_calmed(said)
    assert words in said["pod"]
    assert words in said["deployment"]
    assert "claimctl explain pod/train-" in said["claim"]


async def test_a_pod_on_a_device_that_went_before_it_started_is_to_be_deleted(
    stage: Stage,
) -> None:
    place = await held(stage, reallocateTimeoutSeconds=None)
    await scaled(stage, 0)
    place.driver.publish(place.node, [])
    await scaled(stage, 1)
    await stage.until_event(REFUSED)
    said = await told(stage)
    nobody_is_calmed(said, "does not publish it any more")
    for name in ("claim", "deployment", "pod"):
        assert "it was bound before its device went" in said[name]
        assert f"kubectl -n {NAMESPACE} delete pod train-" in said[name]
