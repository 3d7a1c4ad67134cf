"""Drivers prepare and unprepare claims for kubelets, each with its habits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from kube_in_process.components.drivers.driver import Driver
from kube_in_process.habits.preparing import FailsToPrepare
from kube_in_process.habits.presence import Slow

from .worlds import HOLD, PODGROUP, WORKLOAD, World
from .worlds import world as make_world

pytestmark = pytest.mark.kube_cluster(HOLD)

GPU = "gpu.example.com"
NODE = "node-0"
STARTS, STOPS = 0.5, 0.5
"""Seconds in which a pod is certainly started, or stopped, where no driver is slow."""


def driver(world: World) -> Driver:
    return world.cluster.driver(GPU)


def verbs(world: World) -> list[str]:
    """The calls with their answers, oldest first."""
    calls = world.cluster.drivers[GPU].calls
    return [f"{call.verb}: {call.error}" if call.error else call.verb for call in calls]


def pod(world: World, name: str = "p1", **spec: Any) -> None:
    world.pod(name, "shared", nodeSelector={"kubernetes.io/hostname": NODE}, **spec)


def status(world: World, name: str = "p1") -> dict[str, Any]:
    shown: dict[str, Any] = world.get("pods", name)["status"]
    return shown


def sandbox(world: World, name: str = "p1") -> tuple[str, str]:
    """Phase, and the condition PodReadyToStartContainers."""
    shown = status(world, name)
    (ready,) = [x for x in shown["conditions"] if x["type"] == "PodReadyToStartContainers"]
    return shown["phase"], ready["status"]


def delete(world: World, name: str = "p1") -> None:
    world.api.delete("pods", "default", name)


def refusals(world: World) -> list[str]:
    head = "Failed to prepare dynamic resources: prepare dynamic resources: "
    events = world.events("FailedPrepareDynamicResources")
    assert all(event.startswith(head) for event in events)
    return [event.removeprefix(head) for event in events]


def refused(text: str) -> str:
    return f"NodePrepareResources failed for ResourceClaim shared: {text}"


async def begun(world: World) -> None:
    """A pod runs with the claim."""
    world.claim()
    pod(world)
    await world.passes(STARTS)
    assert status(world)["phase"] == "Running"


async def test_a_claim_is_prepared_for_its_first_pod_on_a_node_and_unprepared_after_the_last(
    world: World,
) -> None:
    await begun(world)
    pod(world, "p2")
    await world.passes(STARTS)
    assert verbs(world) == ["prepare"]
    delete(world)
    await world.passes(STOPS)
    assert (verbs(world), driver(world).prepared) == (["prepare"], [("default/shared", NODE)])
    delete(world, "p2")
    await world.passes(STOPS)
    assert (verbs(world), driver(world).prepared) == (["prepare", "unprepare"], [])


async def test_a_call_tells_its_claim_its_node_and_its_times(world: World) -> None:
    driver(world).take_up(Slow(prepare_seconds=4.0, unprepare_seconds=0.0))
    world.claim()
    pod(world)
    await world.passes(5)
    (call,) = driver(world).calls
    claim = world.get("resourceclaims", "shared")
    named = (call.verb, call.claim, call.uid, call.node, call.error)
    assert named == ("prepare", "default/shared", claim["metadata"]["uid"], NODE, "")
    assert (call.time - call.asked, call.time <= world.cluster.clock.monotonic()) == (4.0, True)


async def test_what_is_listed_does_not_keep_a_claim_prepared(world: World) -> None:
    await begun(world)
    reference = world.get("resourceclaims", "shared")["status"]["reservedFor"]
    world.reserve(*reference, WORKLOAD)
    delete(world)
    await world.passes(STOPS)
    assert (world.listed(), driver(world).prepared) == (["work"], [])


async def test_a_claim_is_unprepared_when_its_containers_have_ended_by_themselves(
    world: World,
) -> None:
    driver(world).take_up(Slow(prepare_seconds=0.0, unprepare_seconds=5.0))
    world.claim()
    pod(
        world, restartPolicy="Never", metadata={"annotations": {"kube-in-process/run-seconds": "2"}}
    )
    await world.passes(5)
    assert status(world)["phase"] == "Running"
    await world.passes(5)
    assert (status(world)["phase"], verbs(world)) == ("Succeeded", ["prepare", "unprepare"])


REFUSING: list[tuple[str, Callable[[World], None], str, list[str]]] = [
    (
        "one that wants one pod, beside a reference that is no pod",
        lambda world: driver(world).take_up("wants-one-pod"),
        refused("driver only supports one pod per claim, got 2"),
        ["prepare: driver only supports one pod per claim, got 2", "prepare"],
    ),
    (
        "one that refuses everything",
        lambda world: driver(world).take_up(FailsToPrepare(text="no power")),
        refused("no power"),
        ["prepare: no power", "prepare"],
    ),
    (
        "one that is not there",
        lambda world: driver(world).leave(),
        f"DRA driver {GPU} is not registered",
        ["prepare"],
    ),
    (
        "one that is not on the node",
        lambda world: driver(world).leave(NODE),
        f"DRA driver {GPU} is not registered",
        ["prepare"],
    ),
    (
        "one that does not offer the device any more",
        lambda world: driver(world).publish(NODE, ["dev-1", "dev-2", "dev-3"]),
        refused("prepare failed: requested device is not allocatable: dev-0"),
        ["prepare: prepare failed: requested device is not allocatable: dev-0", "prepare"],
    ),
]


def mend(world: World) -> None:
    asked = driver(world)
    asked.drop()
    asked.publish(NODE, ["dev-0", "dev-1", "dev-2", "dev-3"])


@pytest.mark.parametrize(
    ("break_it", "text", "calls"), [name[1:] for name in REFUSING], ids=[x[0] for x in REFUSING]
)
async def test_a_kubelet_asks_a_driver_again_at_its_next_sync(
    world: World, break_it: Callable[[World], None], text: str, calls: list[str]
) -> None:
    await held(world)
    break_it(world)
    pod(world)
    await world.passes(STARTS)
    assert (sandbox(world), refusals(world)) == (("Pending", "False"), [text])
    waiting = status(world)["containerStatuses"][0]["state"]["waiting"]
    assert (waiting, driver(world).prepared) == ({"reason": "ContainerCreating"}, [])
    mend(world)
    # a change of the claim is no reason for a kubelet to look again
    world.api.patch("resourceclaims", "default", "shared", {"metadata": {"labels": {"a": "b"}}})
    await world.passes(59)
    assert sandbox(world) == ("Pending", "False")
    before = status(world)["conditions"]
    await world.passes(31)
    assert (sandbox(world), verbs(world)) == (("Running", "True"), calls)
    assert status(world)["conditions"][0]["lastTransitionTime"] > before[0]["lastTransitionTime"]


async def held(world: World) -> None:
    """The claim is allocated, and lists a workload and no pod."""
    await begun(world)
    reference = world.get("resourceclaims", "shared")["status"]["reservedFor"]
    world.reserve(*reference, WORKLOAD)
    delete(world)
    await world.passes(STOPS)
    driver(world).calls.clear()


async def test_a_driver_that_wants_one_pod_takes_a_list_of_that_pod(world: World) -> None:
    driver(world).take_up("wants-one-pod")
    await held(world)
    world.reserve()
    pod(world)
    await world.passes(STARTS)
    pod(world, "p2")
    await world.passes(STARTS)
    # the second pod finds the claim prepared, so the driver does not see the list of two
    assert (world.phases(), world.listed()) == (["Running"] * 2, ["p1", "p2"])


async def test_a_driver_judges_the_list_that_the_claim_has_at_the_next_sync(world: World) -> None:
    driver(world).take_up("wants-one-pod")
    await held(world)
    pod(world)
    await world.passes(STARTS)
    both = world.get("resourceclaims", "shared")["status"]["reservedFor"]
    world.reserve(*(pod for pod in both if pod["name"] == "p1"))
    await world.passes(90)
    assert (sandbox(world), len(verbs(world))) == (("Running", "True"), 2)


@pytest.mark.kube_cluster(PODGROUP)
async def test_a_driver_that_wants_one_pod_takes_no_group_for_a_pod(world: World) -> None:
    driver(world).take_up("wants-one-pod")
    world.claim()
    shares = [{"name": "c", "resourceClaimName": "shared"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
    world.create("podgroups", "group", spec)
    pod(world, schedulingGroup={"podGroupName": "group"})
    await world.passes(STARTS)
    text = "driver only supports Pods, unsupported reference podgroups"
    assert (world.listed(), refusals(world)) == (["group"], [refused(text)])


async def test_a_pod_that_somebody_labels_is_looked_at_at_once(world: World) -> None:
    driver(world).take_up(FailsToPrepare(text="no power"))
    world.claim()
    pod(world)
    await world.passes(STARTS)
    driver(world).drop("fails-to-prepare")
    world.api.patch("pods", "default", "p1", {"metadata": {"labels": {"a": "b"}}})
    await world.passes(STARTS)
    assert sandbox(world) == ("Running", "True")


async def test_a_pod_that_is_not_listed_waits_for_the_next_sync_also_when_it_is_listed(
    world: World,
) -> None:
    await held(world)
    world.cluster.pause("resourceclaim-controller")
    world.pod("p1", "shared", nodeName=NODE)
    await world.passes(STARTS)
    mine = world.get("pods", "p1")["metadata"]["uid"]
    claim = world.get("resourceclaims", "shared")["metadata"]["uid"]
    text = f"pod p1 ({mine}) is not allowed to use ResourceClaim shared ({claim})"
    assert (refusals(world), verbs(world)) == ([text], [])
    world.reserve(WORKLOAD, {"resource": "pods", "name": "p1", "uid": mine})
    await world.passes(50)
    assert sandbox(world) == ("Pending", "False")
    await world.passes(40)
    assert sandbox(world) == ("Running", "True")


async def test_a_kubelet_reads_the_claim_from_the_server(world: World) -> None:
    """Its own view may be late: the list that counts is that of the moment."""
    driver(world).take_up("wants-one-pod")
    await held(world)
    world.cluster.kubelet.views.set_lag(5.0, "resourceclaims")
    world.reserve()
    pod(world)
    await world.passes(STARTS)
    assert sandbox(world) == ("Running", "True")


async def test_a_refused_pod_that_is_deleted_goes(world: World) -> None:
    driver(world).take_up(FailsToPrepare(text="no power"))
    world.claim()
    pod(world)
    await world.passes(STARTS)
    delete(world)
    await world.passes(STOPS)
    assert (world.pods(), verbs(world)) == ([], ["prepare: no power", "unprepare"])


async def test_a_pod_that_goes_while_its_devices_are_prepared_waits_for_the_answer(
    world: World,
) -> None:
    driver(world).take_up(Slow(prepare_seconds=20.0, unprepare_seconds=0.0))
    world.claim()
    pod(world)
    await world.passes(5)
    assert sandbox(world) == ("Pending", "False")
    delete(world)
    await world.passes(10)
    assert (len(world.pods()), world.allocated(), verbs(world)) == (1, True, [])
    await world.passes(10)
    assert (world.pods(), verbs(world)) == ([], ["prepare", "unprepare"])


async def test_two_pods_wait_for_one_slow_prepare(world: World) -> None:
    driver(world).take_up(Slow(prepare_seconds=20.0, unprepare_seconds=0.0))
    world.claim()
    for name in ("p1", "p2"):
        pod(world, name)
    await world.passes(19)
    assert world.phases() == ["Pending"] * 2
    await world.passes(2)
    assert (world.phases(), verbs(world)) == (["Running"] * 2, ["prepare"])


async def test_a_pod_waits_while_its_claim_is_unprepared_for_another_one(world: World) -> None:
    await begun(world)
    world.reserve(*world.get("resourceclaims", "shared")["status"]["reservedFor"], WORKLOAD)
    driver(world).take_up(Slow(prepare_seconds=0.0, unprepare_seconds=10.0))
    delete(world)
    await world.passes(1)
    pod(world, "p2")
    await world.passes(5)
    assert status(world, "p2")["phase"] == "Pending"
    await world.passes(6)
    assert status(world, "p2")["phase"] == "Running"
    assert verbs(world) == ["prepare", "unprepare", "prepare"]


KEEPING: list[tuple[str, Callable[[Driver], None], Callable[[Driver], None]]] = [
    (
        "refuses",
        lambda driver: driver.take_up("fails-to-unprepare"),
        lambda driver: driver.drop("fails-to-unprepare"),
    ),
    (
        "is away",
        lambda driver: driver.leave(),
        lambda driver: driver.come_back(),
    ),
]


@pytest.mark.parametrize(
    ("break_it", "mend_it"), [name[1:] for name in KEEPING], ids=[name[0] for name in KEEPING]
)
async def test_a_deleted_pod_stays_until_its_driver_has_unprepared_its_claim(
    world: World, break_it: Callable[[Driver], None], mend_it: Callable[[Driver], None]
) -> None:
    await begun(world)
    break_it(driver(world))
    delete(world)
    await world.passes(120)
    assert (status(world)["phase"], world.allocated()) == ("Running", True)
    assert driver(world).prepared == [("default/shared", NODE)]
    mend_it(driver(world))
    await world.passes(15)
    assert (world.pods(), world.allocated(), driver(world).prepared) == ([], False, [])


@pytest.mark.parametrize("phase", ["Running", "Failed"])
@pytest.mark.parametrize(("grace", "seconds"), [(None, 30), (7, 7), (0, 0)])
async def test_the_containers_of_a_pod_that_was_deleted_by_force_go_on_for_its_grace(
    world: World, grace: int | None, seconds: int, phase: str
) -> None:
    """Also if another client, such as PodGC, has set the phase before."""
    world.claim()
    given: dict[str, Any] = {} if grace is None else {"terminationGracePeriodSeconds": grace}
    pod(world, **given)
    await world.passes(STARTS)
    world.api.patch("pods", "default", "p1", {"status": {"phase": phase}}, "status")
    deleted = world.cluster.clock.monotonic()
    world.cluster.force_delete("default", "p1")
    await world.passes(60)
    assert seconds + 0.5 <= unprepared_after(world, deleted) <= seconds + 4


async def test_a_driver_that_is_away_unprepares_what_was_left_when_it_is_back(
    world: World,
) -> None:
    await begun(world)
    driver(world).leave()
    world.cluster.force_delete("default", "p1")
    await world.passes(160)
    assert (world.pods(), driver(world).prepared) == ([], [("default/shared", NODE)])
    driver(world).come_back()
    await world.passes(15)
    assert driver(world).prepared == []


async def test_a_new_claim_of_an_old_name_waits_until_the_old_one_is_unprepared(
    world: World,
) -> None:
    await begun(world)
    old = world.get("resourceclaims", "shared")["metadata"]["uid"]
    world.cluster.force_delete("default", "p1")
    world.api.delete("resourceclaims", "default", "shared")
    await world.passes(2)
    text = f"old ResourceClaim with same name shared and different UID {old} still exists"
    world.claim()
    pod(world)
    await world.passes(2)
    assert refusals(world) == [f"{text} (previous pod force-deleted?!)"]
    await world.passes(90)
    assert verbs(world) == ["prepare", "unprepare", "prepare"]


@pytest.mark.parametrize(
    ("rebooted", "calls"),
    [(False, ["prepare"]), (True, ["prepare", "prepare"])],
    ids=["cut off", "rebooted"],
)
async def test_only_a_reboot_makes_a_kubelet_prepare_again(
    world: World, rebooted: bool, calls: list[str]
) -> None:
    await begun(world)
    world.cluster.lose_node(NODE)
    (world.cluster.reboot_node if rebooted else world.cluster.restore_node)(NODE)
    await world.passes(1)
    assert (verbs(world), status(world)["phase"]) == (calls, "Running")


async def test_a_reboot_ends_a_pod_that_does_not_start_again_and_its_claim_is_unprepared(
    world: World,
) -> None:
    world.claim()
    pod(world, restartPolicy="Never")
    await world.passes(STARTS)
    driver(world).take_up(Slow(prepare_seconds=0.0, unprepare_seconds=5.0))
    world.cluster.lose_node(NODE)
    world.cluster.reboot_node(NODE)
    await world.passes(4)
    assert status(world)["phase"] == "Running"
    await world.passes(2)
    assert (status(world)["phase"], verbs(world)) == ("Failed", ["prepare", "unprepare"])


async def test_what_was_deleted_while_a_node_was_cut_off_ends_after_its_return(
    world: World,
) -> None:
    """The kubelet hears of the deletion then, and gives the containers their grace."""
    await begun(world)
    world.cluster.lose_node(NODE)
    world.cluster.force_delete("default", "p1")
    await world.passes(10)
    world.cluster.restore_node(NODE)
    back = world.cluster.clock.monotonic()
    await world.passes(60)
    assert 30.5 <= unprepared_after(world, back) <= 34


SEEDS = [replace(HOLD, seed=seed) for seed in range(5)]


@pytest.mark.parametrize("options", SEEDS)
@pytest.mark.parametrize("before", [True, False], ids=["knew", "was down"])
async def test_a_kubelet_that_starts_finds_what_vanished_pods_left_within_a_minute(
    world: World, before: bool
) -> None:
    """Whether it knew of the deletion before, or the pod was deleted while it was down."""
    await begun(world)
    if before:
        world.cluster.force_delete("default", "p1")
        await world.passes(10)
    world.cluster.restart_kubelet(NODE, 50.0)
    start = world.cluster.clock.monotonic() + 50
    await world.passes(1)
    if not before:
        world.cluster.force_delete("default", "p1")
    await world.passes(48)
    assert (verbs(world), driver(world).prepared) == (["prepare"], [("default/shared", NODE)])
    await world.passes(62)
    assert 0 <= unprepared_after(world, start) <= 60
    assert driver(world).prepared == []


async def test_kubelets_find_what_is_left_at_moments_of_their_own() -> None:
    moments = []
    for options in SEEDS:
        async with make_world(options) as world:
            await begun(world)
            world.cluster.force_delete("default", "p1")
            world.cluster.restart_kubelet(NODE, 1.0)
            start = world.cluster.clock.monotonic() + 1
            await world.passes(70)
            moments.append(unprepared_after(world, start))
    assert max(moments) - min(moments) > 20


async def test_a_kubelet_that_found_what_is_left_asks_a_driver_once_a_minute(world: World) -> None:
    await begun(world)
    world.cluster.force_delete("default", "p1")
    driver(world).take_up("fails-to-unprepare")
    world.cluster.restart_kubelet(NODE, 1.0)
    await world.passes(300)
    asked = [call.asked for call in driver(world).calls[1:]]
    assert len(asked) >= 4
    assert {round(later - earlier) for earlier, later in pairwise(asked)} == {60}


async def test_what_a_started_kubelet_has_not_found_waits_while_its_node_is_cut_off(
    world: World,
) -> None:
    await begun(world)
    world.cluster.force_delete("default", "p1")
    world.cluster.restart_kubelet(NODE, 0.0)
    await world.passes(0)
    world.cluster.lose_node(NODE)
    await world.passes(100)
    assert verbs(world) == ["prepare"]
    world.cluster.restore_node(NODE)
    await world.passes(1)
    assert verbs(world) == ["prepare", "unprepare"]


async def test_nothing_is_prepared_after_a_reboot_and_its_kubelet_finds_what_it_knew(
    world: World,
) -> None:
    await begun(world)
    world.cluster.lose_node(NODE)
    world.cluster.force_delete("default", "p1")
    await world.passes(100)
    assert (verbs(world), driver(world).prepared) == (["prepare"], [("default/shared", NODE)])
    world.cluster.reboot_node(NODE)
    back = world.cluster.clock.monotonic()
    assert driver(world).prepared == []
    await world.passes(61)
    assert 0 <= unprepared_after(world, back) <= 60


@pytest.mark.parametrize("rebooted", [False, True])
async def test_a_start_on_another_node_changes_nothing(world: World, rebooted: bool) -> None:
    await begun(world)
    deleted = world.cluster.clock.monotonic()
    world.cluster.force_delete("default", "p1")
    if rebooted:
        world.cluster.reboot_node("node-1")
    else:
        world.cluster.restart_kubelet("node-1", 0.0)
    await world.passes(30)
    assert driver(world).prepared == [("default/shared", NODE)]
    await world.passes(60)
    assert 30.5 <= unprepared_after(world, deleted) <= 34


def unprepared_after(world: World, since: float) -> float:
    last = driver(world).calls[-1]
    assert last.verb == "unprepare"
    return last.time - since


async def test_a_pod_may_be_the_first_to_hear_that_its_claim_was_not_unprepared_for_another(
    world: World,
) -> None:
    """The claim is still prepared, so the pod starts with it."""
    await begun(world)
    world.reserve(*world.get("resourceclaims", "shared")["status"]["reservedFor"], WORKLOAD)
    driver(world).take_up(Slow(prepare_seconds=0.0, unprepare_seconds=10.0))
    driver(world).take_up("fails-to-unprepare")
    world.cluster.force_delete("default", "p1")
    await world.passes(35)
    pod(world, "p2")
    await world.passes(STARTS)
    assert status(world, "p2")["phase"] == "Pending"
    # the answer is due while nobody listens, and p2 is looked at before what p1 left
    world.cluster.lose_node(NODE)
    await world.passes(30)
    assert verbs(world) == ["prepare"]
    world.cluster.restore_node(NODE)
    await world.passes(STARTS)
    assert status(world, "p2")["phase"] == "Running"
    assert verbs(world) == ["prepare", "unprepare: the device does not answer"]


async def test_a_restarted_kubelet_looks_at_waiting_pods_at_once(world: World) -> None:
    driver(world).take_up(FailsToPrepare(text="no power"))
    world.claim()
    pod(world)
    await world.passes(STARTS)
    driver(world).drop("fails-to-prepare")
    world.cluster.restart_kubelet(NODE, 0.0)
    await world.passes(STARTS)
    assert sandbox(world) == ("Running", "True")
