"""Taints of devices: whom kube-controller-manager evicts, and what the scheduler makes of them.

Seen on 1.36.2: by default with taints in ResourceSlices, behind DRADeviceTaintRules with rules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.options import ClusterOptions

from .fabric import SLOW, Fabric
from .worlds import HOLD, PODGROUP, WORKLOAD, Object, World, world

BARE = replace(HOLD, nodes=1, devices_per_node=0)
RULED = replace(BARE, taint_rules=True)
pytestmark = pytest.mark.kube_cluster(BARE)
BROKEN = {"key": "broken", "effect": "NoExecute"}
CLOSED = {"key": "broken", "effect": "NoSchedule"}
EVICTED = "DeviceTaintManagerEviction"


def driver(world: World, *devices: str, fields: Object | None = None) -> Fabric:
    fabric = Fabric(world)
    fabric.make_class()
    fabric.publish("pool", "node-0", *(devices or ("a",)), fields=fields or {})
    return fabric


def claim(world: World, name: str = "shared", *tolerations: Object) -> None:
    exactly: Object = {"deviceClassName": "fabric.example.com"}
    if tolerations:
        exactly["tolerations"] = list(tolerations)
    world.claim(name, {"requests": [{"name": "d", "exactly": exactly}]})


def alive(world: World) -> list[str]:
    return [pod["metadata"]["name"] for pod in world.pods()]


EXECUTE: Object = {"operator": "Exists", "effect": "NoExecute"}
CASES: tuple[tuple[str, tuple[Object, ...], float, bool], ...] = (
    ("nothing is tolerated", (), 1, False),
    ("it is tolerated for ever", (EXECUTE,), 3600, True),
    ("it is tolerated by key", ({"key": "broken", "effect": "NoExecute"},), 3600, True),
    ("another key is tolerated", ({**EXECUTE, "key": "other"},), 1, False),
    ("it is tolerated so far", ({**EXECUTE, "tolerationSeconds": 20},), 10, True),
    ("it was tolerated for a while", ({**EXECUTE, "tolerationSeconds": 20},), 25, False),
    ("the effect is not named", ({"operator": "Exists"},), 1, False),
    ("the effect is not named", ({"operator": "Exists", "tolerationSeconds": 20},), 1, False),
)


@pytest.mark.parametrize(
    ("tolerations", "after", "stays"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
async def test_a_pod_of_a_tainted_device_stays_or_goes(
    world: World, tolerations: tuple[Object, ...], after: float, stays: bool
) -> None:
    drivers = driver(world)
    claim(world, "shared", *tolerations)
    world.pod("p", "shared")
    await world.passes(1)
    assert world.phases() == ["Running"]
    drivers.taint("pool", BROKEN)
    await world.passes(after)
    assert (alive(world) == ["p"]) is stays


async def test_before_1_36_taints_of_devices_are_dropped() -> None:
    async with world(replace(BARE, kubernetes_version=(1, 34))) as w:
        drivers = driver(w)
        claim(w)
        w.pod("p", "shared")
        await w.passes(1)
        drivers.taint("pool", BROKEN)
        await w.passes(60)
        assert alive(w) == ["p"]
        [published] = w.api.list("resourceslices")
        assert "taints" not in published["spec"]["devices"][0]


async def test_an_evicted_pod_tells_why(world: World) -> None:
    drivers = driver(world)
    claim(world)
    world.pod("p", "shared", metadata={"finalizers": ["example.com/wait"]})
    await world.passes(1)
    drivers.taint("pool", BROKEN)
    await world.passes(1)
    pod = world.get("pods", "p")
    assert pod["metadata"]["deletionTimestamp"]
    [told] = [
        condition
        for condition in pod["status"]["conditions"]
        if condition["type"] == "DisruptionTarget"
    ]
    assert (told["status"], told["reason"]) == ("True", "DeletionByDeviceTaintManager")
    assert told["message"] == "Device Taint manager: deleting due to NoExecute taint"
    assert world.events(EVICTED) == ["Marking for deletion"]


async def test_a_pod_stays_whose_devices_are_good_again_in_time(world: World) -> None:
    drivers = driver(world)
    claim(world, "shared", {**EXECUTE, "tolerationSeconds": 20})
    world.pod("p", "shared")
    await world.passes(1)
    drivers.taint("pool", BROKEN)
    await world.passes(10)
    drivers.taint("pool")
    await world.passes(60)
    assert world.phases() == ["Running"]
    assert world.events(EVICTED) == ["Cancelling deletion"]


async def test_a_pod_of_another_device_stays(world: World) -> None:
    drivers = driver(world, "a", "b")
    claim(world, "mine")
    claim(world, "others")
    world.pod("p1", "mine")
    world.pod("p2", "others")
    await world.passes(1)
    drivers.taint("pool", BROKEN, device="a")
    await world.passes(5)
    assert alive(world) == ["p2"]


async def test_the_scheduler_gives_tainted_devices_to_nobody(world: World) -> None:
    drivers = driver(world)
    drivers.taint("pool", CLOSED)
    claim(world)
    world.pod("p", "shared")
    await world.passes(1)
    assert "cannot allocate all claims" in world.reason("p")


async def test_a_held_device_gets_one_pod_after_another(world: World) -> None:
    """The scheduler does not look at the taints of an allocated claim."""
    drivers = driver(world, "a", "b")
    claim(world)
    world.pod("p", "shared")
    await world.passes(1)
    listed = world.get("resourceclaims", "shared")["status"]["reservedFor"]
    world.reserve(*listed, WORKLOAD)
    drivers.taint("pool", CLOSED, device="a")
    world.pod("q", "shared")
    await world.passes(1)
    assert world.phases() == ["Running"] * 2
    drivers.taint("pool", BROKEN, device="a")
    await world.passes(1)
    world.pod("r", "shared")
    await world.passes(1)
    assert alive(world) == []
    assert world.devices() == ["pool/a"]
    bound = [
        revision.name for revision in world.cluster.history() if revision.subresource == "binding"
    ]
    assert bound == ["p", "q", "r"]


async def replaced(world: World, *, hold: bool = False, pace: float = 0.0) -> int:
    """How many pods a Deployment makes in ten seconds after its device was tainted."""
    drivers = driver(world, "a", "b")
    claim(world)
    world.workload("deployments", "work", "shared", replicas=1)
    await world.passes(1)
    if hold:
        listed = world.get("resourceclaims", "shared")["status"]["reservedFor"]
        world.reserve(*listed, WORKLOAD)
    since = world.cluster.store.revision
    world.cluster.slow_scheduler(lambda _: (pace, 0.0))
    drivers.taint("pool", BROKEN, device="a")
    await world.passes(10)
    wanted = ("pods", "", "create")
    history = world.cluster.history(since)
    return len(
        [
            1
            for revision in history
            if (revision.plural, revision.subresource, revision.verb) == wanted
        ]
    )


async def test_a_replacement_that_is_listed_before_the_old_pod_is_gone_keeps_the_device(
    world: World,
) -> None:
    """It is a race: on a real cluster without kubelets, 4 and 6 pods until one ran elsewhere."""
    assert await replaced(world) > 10
    assert world.devices() == ["pool/a"]


async def test_a_replacement_that_is_listed_later_gets_another_device(world: World) -> None:
    assert await replaced(world, pace=0.1) < 4
    assert world.phases() == ["Running"]
    assert world.devices() == ["pool/b"]


async def test_a_hold_keeps_the_device_for_ever(world: World) -> None:
    """On a real cluster, 3 to 5 pods a second come and go."""
    assert 10 < await replaced(world, hold=True, pace=0.1) < 60
    assert world.devices() == ["pool/a"]


async def test_a_pod_that_waits_for_its_device_goes_only_when_it_is_bound(world: World) -> None:
    drivers = driver(world, fields=SLOW)
    claim(world)
    world.pod("p", "shared")
    await world.passes(1)
    drivers.taint("pool", BROKEN)
    await world.passes(20)
    assert alive(world) == ["p"]
    drivers.report("shared")
    await world.passes(6)
    assert alive(world) == []


async def test_a_finished_pod_goes_while_it_is_listed(world: World) -> None:
    """Beside another reference, kube-controller-manager's own loop lists it again."""
    drivers = driver(world)
    claim(world)
    world.pod("p", "shared", restartPolicy="Never")
    await world.passes(1)
    listed = world.get("resourceclaims", "shared")["status"]["reservedFor"]
    world.reserve(*listed, WORKLOAD)
    world.api.patch("pods", "default", "p", {"status": {"phase": "Succeeded"}}, "status")
    drivers.taint("pool", BROKEN)
    await world.passes(2)
    assert alive(world) == []


async def test_a_finished_pod_with_a_tombstone_stays(world: World) -> None:
    drivers = driver(world)
    claim(world)
    pod = world.pod("p", "shared", restartPolicy="Never")
    await world.passes(1)
    tombstone = {"apiGroup": "claimctl.io", "resource": "finishedpods", "name": "p"}
    world.reserve({**tombstone, "uid": pod["metadata"]["uid"]}, WORKLOAD)
    world.api.patch("pods", "default", "p", {"status": {"phase": "Succeeded"}}, "status")
    await world.passes(1)
    drivers.taint("pool", BROKEN)
    await world.passes(60)
    assert alive(world) == ["p"]


@pytest.mark.kube_cluster(replace(PODGROUP, nodes=1, devices_per_node=0))
async def test_the_pods_of_a_listed_group_go(world: World) -> None:
    drivers = driver(world)
    claim(world)
    entry = {"name": "c", "resourceClaimName": "shared"}
    policy: Object = {"basic": {}}
    world.create("podgroups", "g", {"schedulingPolicy": policy, "resourceClaims": [entry]})
    world.pod("p", "shared", schedulingGroup={"podGroupName": "g"})
    await world.passes(1)
    assert world.listed() == ["g"]
    drivers.taint("pool", BROKEN)
    await world.passes(1)
    assert alive(world) == []


# DeviceTaintRules

RULES: tuple[tuple[str, Object, bool], ...] = (
    ("of the driver", {}, True),
    ("of the pool", {"pool": "pool"}, True),
    ("of the device", {"pool": "pool", "device": "a"}, True),
    ("of another device", {"device": "b"}, False),
    ("of another driver", {"driver": "other.example.com"}, False),
)


@pytest.mark.kube_cluster(RULED)
@pytest.mark.parametrize(
    ("selector", "goes"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES]
)
async def test_a_rule_evicts_the_pods(world: World, selector: dict[str, str], goes: bool) -> None:
    drivers = driver(world)
    claim(world)
    world.pod("p", "shared")
    await world.passes(1)
    drivers.make_rule("broken", BROKEN, **selector)
    await world.passes(1)
    assert (alive(world) == []) is goes


@pytest.mark.kube_cluster(RULED)
async def test_a_rule_can_be_tolerated_for_a_while_and_be_taken_back(world: World) -> None:
    drivers = driver(world)
    claim(world, "shared", {**EXECUTE, "tolerationSeconds": 20})
    world.pod("p", "shared")
    await world.passes(1)
    drivers.make_rule("broken", BROKEN)
    await world.passes(15)
    world.api.delete("devicetaintrules", "", "broken")
    await world.passes(60)
    assert alive(world) == ["p"]
    drivers.make_rule("broken", BROKEN)
    await world.passes(21)
    assert alive(world) == []


@pytest.mark.kube_cluster(RULED)
async def test_a_rule_without_a_selector_or_with_another_effect_evicts_nobody(
    world: World,
) -> None:
    drivers = driver(world)
    claim(world)
    world.pod("p", "shared")
    await world.passes(1)
    world.create("devicetaintrules", "nothing", {"taint": BROKEN})
    drivers.make_rule("closed", CLOSED)
    drivers.make_rule("none", {**BROKEN, "effect": "None"})
    await world.passes(10)
    assert alive(world) == ["p"]


@pytest.mark.kube_cluster(RULED)
async def test_the_scheduler_gives_away_devices_that_a_rule_taints(world: World) -> None:
    """Seen on 1.36.2 with the gate on in every program: the pods are bound, and evicted."""
    drivers = driver(world)
    drivers.make_rule("broken", BROKEN)
    claim(world)
    world.pod("p", "shared")
    await world.passes(1)
    bound = [
        revision.name for revision in world.cluster.history() if revision.subresource == "binding"
    ]
    assert (bound, alive(world)) == (["p"], [])


@pytest.mark.kube_cluster(RULED)
async def test_a_rule_is_dated_anew_when_its_taint_changes(world: World) -> None:
    drivers = driver(world)
    first = drivers.make_rule("broken", CLOSED)
    await world.passes(5)
    name = first["metadata"]["name"]
    patch: Object = {"spec": {"taint": {"effect": "NoExecute"}}}
    changed = world.api.patch("devicetaintrules", "", name, patch)
    assert first["spec"]["taint"]["timeAdded"] < changed["spec"]["taint"]["timeAdded"]
    assert changed["metadata"]["generation"] == 2


@pytest.mark.kube_cluster(RULED)
@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"taint": {"key": "a b", "effect": "NoExecute"}}, r"spec\.taint\.key"),
        ({"taint": {"key": "k"}}, r"spec\.taint\.effect: Required value"),
        (
            {"taint": {"key": "k", "effect": "X"}},
            'Unsupported value: "X": supported values: "NoExecute", "NoSchedule", "None"',
        ),
        ({"deviceSelector": {"pool": "_"}, "taint": BROKEN}, r"spec\.deviceSelector\.pool"),
    ],
)
async def test_a_rule_is_checked(world: World, spec: dict[str, Any], wrong: str) -> None:
    with pytest.raises(StatusError, match=wrong):
        world.create("devicetaintrules", "r", spec)


@pytest.mark.parametrize("options", [BARE, replace(RULED, kubernetes_version=(1, 34))])
async def test_rules_are_served_only_where_their_gate_is_on(options: ClusterOptions) -> None:
    async with world(options) as w:
        with pytest.raises(KeyError, match="devicetaintrules"):
            driver(w).make_rule("broken", BROKEN)
