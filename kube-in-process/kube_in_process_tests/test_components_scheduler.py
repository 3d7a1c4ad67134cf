"""The scheduler: whom it lists, when it writes, and what it says when a pod has to wait."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kube_in_process.components.scheduler.binding import FINALIZER
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.storage.requests import Fault, FaultPoint
from kube_in_process.virtual import run

from .worlds import HOLD, NATIVE, PODGROUP, WORKLOAD, World, timed, world

pytestmark = pytest.mark.kube_cluster(NATIVE)

ONE_NODE = replace(HOLD, nodes=1, devices_per_node=1)
BROKEN = {"key": "broken", "effect": "NoSchedule"}


async def test_in_native_the_first_pod_brings_the_workload_into_the_list_and_no_pod_follows(
    world: World,
) -> None:
    world.claim(reservedFor=WORKLOAD)
    world.workload("deployments", "work", "shared", replicas=5)
    await world.passes(1)
    status = world.get("resourceclaims", "shared")["status"]
    assert status["reservedFor"] == [WORKLOAD]
    assert status["allocation"]["reservedForAnyPod"] is True
    assert world.phases() == ["Running"] * 5
    assert world.writes("resourceclaims", "shared") == [
        ("kubernetes-admin", "create"),
        ("kube-scheduler", "update"),
        ("kube-scheduler", "update status"),
    ]


async def test_in_native_a_claim_without_a_workload_lists_pods(world: World) -> None:
    world.claim()
    world.pod("p1", "shared")
    world.pod("p2", "shared")
    await world.passes(1)
    assert world.listed() == ["p1", "p2"]
    assert "reservedForAnyPod" not in world.get("resourceclaims", "shared")["status"]["allocation"]


async def test_after_a_fence_the_next_pod_writes_the_claim_before_it_is_bound(world: World) -> None:
    world.claim(reservedFor=WORKLOAD)
    world.pod("p1", "shared")
    await world.passes(1)
    world.reserve()
    fenced = world.cluster.store.revision
    world.pod("p2", "shared")
    await world.passes(1)
    assert world.listed() == ["work"]
    seen = [
        (revision.plural, revision.subresource)
        for revision in world.cluster.history(fenced)
        if revision.actor == "system:kube-scheduler" and revision.plural != "events"
    ]
    assert seen == [("pods", "status"), ("resourceclaims", "status"), ("pods", "binding")]


async def test_a_scheduler_with_a_late_view_binds_past_a_fence_that_it_has_not_seen(
    world: World,
) -> None:
    """This is the race that a release settles: the write that the pod needed never comes."""
    world.claim(reservedFor=WORKLOAD)
    world.pod("p1", "shared")
    await world.passes(5)
    world.cluster.set_lag(2.0)
    world.pod("p2", "shared")
    await world.passes(1.9)
    world.reserve()
    await world.passes(1)
    assert world.listed() == []
    assert world.get("pods", "p2")["spec"]["nodeName"]


async def test_a_later_pod_of_the_name_is_not_bound_for_the_one_that_was_seen(
    world: World,
) -> None:
    """The binding carries the UID of the pod that the scheduler has planned for."""
    world.claim()
    world.cluster.set_lag(2.0)
    world.pod("p1", "shared")
    await world.passes(1)
    world.cluster.force_delete("default", "p1")
    world.pod("p1", "shared")
    await world.passes(5)
    listed: list[str] = []
    for revision in world.cluster.history():
        if revision.plural == "resourceclaims":
            references = revision.object().get("status", {}).get("reservedFor") or ()
            listed = [reference["uid"] for reference in references]
        if revision.subresource == "binding":
            assert listed == [revision.object()["metadata"]["uid"]]
    assert world.get("pods", "p1")["spec"]["nodeName"]


@pytest.mark.kube_cluster(timed(HOLD, scheduler_cache_lag=1.0))
async def test_a_late_view_is_caught_up_with_and_does_not_schedule_a_pod_twice(
    world: World,
) -> None:
    world.claim()
    for index in range(5):
        world.pod(f"p{index}", "shared")
    await world.passes(10)
    assert world.listed() == ["p0", "p1", "p2", "p3", "p4"]
    assert world.phases() == ["Running"] * 5
    bindings = [
        revision for revision in world.cluster.history() if revision.subresource == "binding"
    ]
    assert len(bindings) == 5


async def test_whether_a_pod_needs_a_write_is_decided_when_it_is_planned(world: World) -> None:
    """A list that is emptied between plan and binding is not noticed: upstream's window."""
    world.claim(reservedFor=WORKLOAD)
    world.pod("p1", "shared")
    await world.passes(1)

    def fence(point: FaultPoint) -> Fault | None:
        if (point.plural, point.subresource, point.verb) == ("pods", "status", "patch"):
            world.cluster.fault_components(None)
            world.reserve()
        return None

    world.pod("p2", "shared")
    world.cluster.fault_components(fence)
    await world.passes(1)
    assert world.listed() == []
    assert world.get("pods", "p2")["status"]["phase"] == "Running"


async def test_a_list_that_was_expanded_to_pods_goes_on_listing_pods(world: World) -> None:
    world.claim(reservedFor=WORKLOAD)
    pod = world.pod("p1", "shared")
    await world.passes(1)
    world.reserve({"resource": "pods", "name": "p1", "uid": pod["metadata"]["uid"]})
    world.pod("p2", "shared")
    await world.passes(1)
    assert world.listed() == ["p1", "p2"]


@pytest.mark.kube_cluster(timed(HOLD, scheduler_cache_lag=1.0))
async def test_a_pod_that_another_client_lists_first_is_refused_and_then_bound(
    world: World,
) -> None:
    """The scheduler adds the pod without looking. Its next try finds the pod listed."""
    world.claim()
    pods = [world.pod("p1", "shared")]
    await world.passes(5)
    pods.append(world.pod("p2", "shared"))
    await world.passes(0.9)
    world.reserve(
        *(
            {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
            for pod in pods
        )
    )
    await world.passes(20)
    told = [revision.data for revision in world.cluster.history() if revision.name == "p2"]
    assert any(b"Duplicate value" in data for data in told)
    assert world.listed() == ["p1", "p2"]
    assert world.get("pods", "p2")["status"]["phase"] == "Running"


@pytest.mark.kube_cluster(replace(HOLD, conflict_storm=True))
async def test_an_entry_that_another_client_added_stays_when_the_scheduler_gives_the_pod_up(
    world: World,
) -> None:
    """Unreserve removes only an entry that PreFilter has seen or PreBind has written."""
    world.claim()
    world.pod("p1", "shared")
    await world.passes(5)
    pod = world.pod("p2", "shared")
    await world.passes(0.001)
    entry = {"resource": "pods", "name": "p2", "uid": pod["metadata"]["uid"]}
    world.reserve(*world.get("resourceclaims", "shared")["status"]["reservedFor"], entry)
    listed = world.cluster.store.revision
    await world.passes(20)
    later = list(world.cluster.history(listed))
    assert any(b"Duplicate value" in revision.data for revision in later)
    assert not [revision for revision in later if revision.plural == "resourceclaims"]
    assert world.get("pods", "p2")["status"]["phase"] == "Running"


@pytest.mark.kube_cluster(timed(HOLD, scheduler_cache_lag=1.0))
async def test_a_write_on_a_late_view_is_refused_and_tried_again_on_a_fresh_claim(
    world: World,
) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(5)
    world.pod("p2", "shared")
    await world.passes(0.9)
    world.api.patch("resourceclaims", "default", "shared", {"metadata": {"labels": {"a": "b"}}})
    await world.passes(2)
    assert world.listed() == ["p1", "p2"]


async def test_a_scheduler_without_the_feature_lists_pods_beside_a_workload(world: World) -> None:
    world.claim(reservedFor=WORKLOAD)
    world.pod("p1", "shared")
    await world.passes(1)
    world.cluster.switch(replace(world.cluster.features, scheduler_reserved_for=False))
    world.pod("p2", "shared")
    await world.passes(1)
    assert world.listed() == ["work", "p2"]


async def test_a_scheduler_with_the_feature_adds_no_pod_beside_any_other_reference(
    world: World,
) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    first = world.get("resourceclaims", "shared")["status"]["reservedFor"]
    world.reserve(*first, {**WORKLOAD, "resource": "others"})
    before = len(world.writes("resourceclaims", "shared"))
    world.cluster.pause("resourceclaim-controller")
    world.pod("p2", "shared")
    await world.passes(1)
    assert world.listed() == ["p1", "work"]
    assert len(world.writes("resourceclaims", "shared")) == before
    assert world.get("pods", "p2")["status"]["phase"] == "Pending"
    assert "is not allowed to use ResourceClaim" in world.events("FailedPrepareDynamicResources")[0]


@pytest.mark.kube_cluster(ONE_NODE)
async def test_a_pod_without_a_device_says_so_and_takes_the_first_that_becomes_free(
    world: World,
) -> None:
    world.claim("first")
    world.claim("second")
    world.pod("p1", "first")
    world.pod("p2", "second")
    await world.passes(1)
    assert world.reason("p2") == (
        "Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims. still not "
        "schedulable, preemption: 0/1 nodes are available: 1 Preemption is not helpful for "
        "scheduling."
    )
    world.api.delete("pods", "default", "p1")
    await world.passes(1)
    assert (world.devices("second"), world.phases()) == (["node-0/dev-0"], ["Running"])


def _taint_the_node(world: World, *taints: dict[str, str]) -> None:
    world.api.patch("nodes", "", "node-0", {"spec": {"taints": list(taints)}})


@pytest.mark.kube_cluster(ONE_NODE)
async def test_a_pod_that_was_refused_before_another_one_came_is_planned_before_it(
    world: World,
) -> None:
    """The scheduler sees the new pod first, and the node without taint before it plans that pod."""
    _taint_the_node(world, BROKEN)
    world.claim("first")
    world.claim("second")
    world.pod("p1", "first")
    await world.passes(1)
    world.pod("p2", "second")
    _taint_the_node(world)
    await world.passes(1)
    assert (world.listed("first"), world.listed("second")) == (["p1"], [])


@pytest.mark.kube_cluster(ONE_NODE)
async def test_a_pod_that_replaces_a_refused_one_of_its_name_is_planned_after_older_pods(
    world: World,
) -> None:
    _taint_the_node(world, BROKEN)
    world.claim("first")
    world.claim("second")
    world.pod("p1", "first")
    world.pod("p2", "second")
    await world.passes(1)
    world.cluster.force_delete("default", "p1")
    world.pod("p1", "first")
    _taint_the_node(world)
    await world.passes(1)
    assert (world.listed("first"), world.listed("second")) == ([], ["p2"])


@pytest.mark.kube_cluster(ONE_NODE)
async def test_a_pod_that_is_refused_again_is_planned_after_pods_that_were_refused_meanwhile(
    world: World,
) -> None:
    _taint_the_node(world, BROKEN)
    world.claim("first")
    world.claim("second")
    world.pod("p1", "first")
    world.pod("p2", "second")
    await world.passes(1)
    world.api.patch("resourceclaims", "default", "first", {"metadata": {"labels": {"a": "b"}}})
    await world.passes(1)
    _taint_the_node(world)
    await world.passes(1)
    assert (world.listed("first"), world.listed("second")) == ([], ["p2"])


@pytest.mark.kube_cluster(HOLD)
async def test_a_pod_waits_without_a_word_for_a_claim_that_is_missing_or_going(
    world: World,
) -> None:
    world.claim()
    world.pod("p1", "shared")
    world.pod("p2", "later")
    await world.passes(1)
    world.api.delete("resourceclaims", "default", "shared")
    world.pod("p3", "shared")
    await world.passes(5)
    assert (world.reason("p2"), world.reason("p3"), world.events("FailedScheduling")) == (
        "",
        "",
        [],
    )
    world.claim("later")
    await world.passes(1)
    assert world.get("pods", "p2")["status"]["phase"] == "Running"


@pytest.mark.kube_cluster(HOLD)
async def test_pods_beyond_256_are_refused_by_the_server_and_tried_again(world: World) -> None:
    world.claim()
    world.workload("deployments", "work", "shared", replicas=258)
    await world.passes(4)
    assert len(world.listed()) == 256
    assert world.phases() == ["Pending"] * 2 + ["Running"] * 256
    waiting = next(pod for pod in world.pods() if pod["status"]["phase"] == "Pending")
    assert world.reason(waiting["metadata"]["name"]) == (
        'SchedulerError: running PreBind plugin "DynamicResources": add reservation to claim '
        'default/shared: ResourceClaim.resource.k8s.io "shared" is invalid: '
        "status.reservedFor: Too many: 257: must have at most 256 items"
    )
    world.api.patch("deployments", "default", "work", {"spec": {"replicas": 256}})
    await world.passes(12)
    assert world.phases() == ["Running"] * 256


@pytest.mark.kube_cluster(replace(HOLD, conflict_storm=True))
async def test_conflicts_come_in_a_storm_and_pass(world: World) -> None:
    """Real: 614 and 738 conflicts, all pods bound after 20 and 31 seconds."""
    world.claim()
    world.workload("deployments", "work", "shared", replicas=60)
    await world.passes(2)
    assert 5 < len(world.listed()) < 40
    await world.passes(38)
    assert len(world.listed()) == 60
    assert any(
        "the object has been modified" in event for event in world.events("FailedScheduling")
    )


@pytest.mark.kube_cluster(HOLD)
async def test_a_cordoned_node_gets_no_pod_and_an_idle_claim_on_it_is_given_up(
    world: World,
) -> None:
    """PostFilter: an allocation that nobody but the pod could hold is taken back."""
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    node = world.get("pods", "p1")["spec"]["nodeName"]
    world.cluster.pause("resourceclaim-controller")
    world.cluster.force_delete("default", "p1")
    world.reserve()
    world.cluster.cordon(node)
    world.pod("p2", "shared")
    await world.passes(1)
    assert world.listed() == ["p2"]
    assert world.get("pods", "p2")["spec"]["nodeName"] != node


@pytest.mark.kube_cluster(HOLD)
async def test_a_pod_that_fits_nowhere_by_itself_takes_no_claim_back(world: World) -> None:
    """The claim is in nobody's way: no node is looked at that its allocation cannot reach."""
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    world.cluster.pause("resourceclaim-controller")
    world.cluster.force_delete("default", "p1")
    world.reserve()
    world.pod("p2", "shared", nodeSelector={"no": "where"})
    await world.passes(8)
    assert (world.listed(), world.allocated()) == ([], True)
    assert world.reason("p2").startswith("Unschedulable: 0/3 nodes are available: 3 node(s) didn't")


@pytest.mark.kube_cluster(HOLD)
async def test_a_hold_keeps_a_claim_on_its_cordoned_node(world: World) -> None:
    world.claim()
    world.pod("p1", "shared")
    await world.passes(1)
    node = world.get("pods", "p1")["spec"]["nodeName"]
    world.reserve(*world.get("resourceclaims", "shared")["status"]["reservedFor"], WORKLOAD)
    world.cluster.cordon(node)
    world.api.delete("pods", "default", "p1")
    await world.passes(1)
    world.pod("p2", "shared")
    await world.passes(5)
    assert world.listed() == ["work"]
    assert world.reason("p2").startswith("Unschedulable: 0/3 nodes are available: 1 node(s) were")
    assert "2 resourceclaim not available on the node" in world.reason("p2")


@pytest.mark.kube_cluster(PODGROUP)
async def test_a_group_is_listed_once_for_all_of_its_pods(world: World) -> None:
    world.claim()
    shares = [{"name": "c", "resourceClaimName": "shared"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
    world.create("podgroups", "group", spec)
    world.workload(
        "deployments",
        "work",
        "shared",
        replicas=20,
        pod={"schedulingGroup": {"podGroupName": "group"}},
    )
    await world.passes(1)
    assert (world.listed(), world.phases()) == (["group"], ["Running"] * 20)


@pytest.mark.kube_cluster(PODGROUP)
async def test_an_idle_group_loses_the_claim_to_any_unschedulable_pod_and_the_allocation_stays(
    world: World,
) -> None:
    world.claim()
    shares = [{"name": "c", "resourceClaimName": "shared"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
    world.create("podgroups", "group", spec)
    member = {"schedulingGroup": {"podGroupName": "group"}}
    world.pod("p1", "shared", **member)
    await world.passes(1)
    world.cluster.force_delete("default", "p1")
    world.pod("p2", "shared", nodeSelector={"no": "where"}, **member)
    await world.passes(1)
    assert (world.listed(), world.allocated()) == ([], True)


async def _idle_on_another_node(world: World, *listed: str) -> None:
    """A claim on node-0 that lists these (``pod``: the pod for node-1), and that pod."""
    world.claim()
    world.pod("first", "shared", nodeSelector={"kubernetes.io/hostname": "node-0"})
    await world.passes(1)
    pod = world.pod("pod", "shared", schedulingGates=[{"name": "example.com/wait"}])
    known = {
        "pod": {"resource": "pods", "name": "pod", "uid": pod["metadata"]["uid"]},
        "work": WORKLOAD,
    }
    world.cluster.pause("resourceclaim-controller")
    world.cluster.force_delete("default", "first")
    world.reserve(*(known[reference] for reference in listed))
    place = {"nodeSelector": {"kubernetes.io/hostname": "node-1"}, "schedulingGates": None}
    world.api.patch("pods", "default", "pod", {"spec": place})
    await world.passes(1)


@pytest.mark.kube_cluster(HOLD)
@pytest.mark.parametrize(
    ("listed", "freed"),
    [((), True), (("pod",), True), (("work",), False), (("pod", "work"), False)],
)
async def test_a_claim_is_given_up_for_a_pod_only_if_nobody_else_is_listed(
    world: World, listed: tuple[str, ...], freed: bool
) -> None:
    """Each of the four lists was tried on 1.36.2."""
    await _idle_on_another_node(world, *listed)
    assert world.devices() == (["node-1/dev-0"] if freed else ["node-0/dev-0"])
    assert world.listed() == (["pod"] if freed else list(listed))


async def _idle_group_on_another_node(world: World) -> None:
    """A pod comes to its group, all of whose pods are gone, and wants another node."""
    world.claim()
    shares = [{"name": "c", "resourceClaimName": "shared"}]
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
    world.create("podgroups", "group", spec)
    member = {"schedulingGroup": {"podGroupName": "group"}}
    world.pod("p1", "shared", nodeSelector={"kubernetes.io/hostname": "node-0"}, **member)
    await world.passes(1)
    world.cluster.force_delete("default", "p1")
    await world.passes(1)
    world.pod("other", "shared", nodeSelector={"kubernetes.io/hostname": "node-1"})
    await world.passes(1)
    assert world.listed() == ["group"]
    assert "still not schedulable, preemption" in world.reason("other")
    world.api.delete("pods", "default", "other")
    world.pod("p2", "shared", nodeSelector={"kubernetes.io/hostname": "node-1"}, **member)
    await world.passes(1)


@pytest.mark.kube_cluster(PODGROUP)
async def test_an_idle_group_gives_way_to_its_own_pod_in_two_steps(world: World) -> None:
    """First the group's entry goes and the pod is not told of preemption, then the allocation."""
    await _idle_group_on_another_node(world)
    first, second = world.events("FailedScheduling")[-2:]
    assert first.endswith(". ResourceClaim unreserved for PodGroup")
    assert ". deallocation of ResourceClaim completed, preemption: " in second
    assert (world.listed(), world.devices()) == (["group"], ["node-1/dev-0"])


@pytest.mark.kube_cluster(replace(PODGROUP, kubernetes_version=(1, 37)))
async def test_from_1_37_on_an_idle_group_gives_way_in_one_step(world: World) -> None:
    """By the text of kubernetes/kubernetes#140535."""
    await _idle_group_on_another_node(world)
    assert not any("deallocation of" in text for text in world.events("FailedScheduling"))
    assert (world.listed(), world.devices()) == (["group"], ["node-1/dev-0"])


def test_the_same_seed_makes_the_same_history() -> None:
    async def history() -> list[tuple[str, str, str]]:
        options = ClusterOptions(preset=Preset.PLAIN, conflict_storm=True, seed=7)
        async with world(options) as w:
            w.claim()
            w.workload("deployments", "work", "shared", replicas=10)
            await w.passes(5)
            return [
                (revision.plural, revision.name, revision.verb) for revision in w.cluster.history()
            ]

    assert run(history()) == run(history())


@pytest.mark.kube_cluster(HOLD)
async def test_a_finalizer_that_goes_just_before_the_allocation_is_put_there_again(
    world: World,
) -> None:
    """Who deallocated takes it off at that moment; without it KCM never deallocates."""

    def unprotect(point: FaultPoint) -> Fault | None:
        if (point.plural, point.subresource) == ("resourceclaims", "status"):
            world.cluster.fault_components(None)
            bare = {"metadata": {"finalizers": None}}
            world.api.patch("resourceclaims", "default", "shared", bare)
        return None

    world.claim()
    world.cluster.fault_components(unprotect)
    world.pod("p1", "shared")
    await world.passes(1)
    assert world.listed() == ["p1"]
    assert world.get("resourceclaims", "shared")["metadata"]["finalizers"] == [FINALIZER]


@pytest.mark.parametrize(("version", "generations"), [((1, 32), [None, None]), ((1, 34), [1, 2])])
async def test_a_pod_that_loses_its_gates_has_a_generation_from_133_on(
    version: tuple[int, int], generations: list[int | None]
) -> None:
    async with world(replace(HOLD, kubernetes_version=version)) as w:
        w.pod("p1", schedulingGates=[{"name": "g"}])
        seen = [w.get("pods", "p1")["metadata"].get("generation")]
        w.api.patch("pods", "default", "p1", {"spec": {"schedulingGates": []}}, kind="merge")
        seen.append(w.get("pods", "p1")["metadata"].get("generation"))
        assert seen == generations
