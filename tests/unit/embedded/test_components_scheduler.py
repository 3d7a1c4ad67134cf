"""The scheduler: whom it lists, when it writes, and what it says when a pod has to wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.embedded.components.scheduler.binding import FINALIZER
from claimctl.embedded.options import ClusterOptions, Dialect
from claimctl.embedded.storage.requests import Fault, FaultPoint

from .worlds import HOLD, NATIVE, PODGROUP, WORKLOAD, World, play, timed

ONE_NODE = replace(HOLD, nodes=1, devices_per_node=1)


def test_in_native_the_first_pod_brings_the_workload_into_the_list_and_no_pod_follows() -> None:
    async def story(w: World) -> None:
        w.claim(reservedFor=WORKLOAD)
        w.workload("deployments", "work", "shared", replicas=5)
        await w.passes(1)
        status = w.get("resourceclaims", "shared")["status"]
        assert status["reservedFor"] == [WORKLOAD]
        assert status["allocation"]["reservedForAnyPod"] is True
        assert w.phases() == ["Running"] * 5
        assert w.writes("resourceclaims", "shared") == [
            ("kubernetes-admin", "create"),
            ("kube-scheduler", "update"),
            ("kube-scheduler", "update status"),
        ]

    play(NATIVE, story)


def test_in_native_a_claim_without_a_workload_lists_pods() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        w.pod("p2", "shared")
        await w.passes(1)
        assert w.listed() == ["p1", "p2"]
        assert "reservedForAnyPod" not in w.get("resourceclaims", "shared")["status"]["allocation"]

    play(NATIVE, story)


def test_after_a_fence_the_next_pod_writes_the_claim_before_it_is_bound() -> None:
    async def story(w: World) -> None:
        w.claim(reservedFor=WORKLOAD)
        w.pod("p1", "shared")
        await w.passes(1)
        w.reserve()
        fenced = w.cluster.store.revision
        w.pod("p2", "shared")
        await w.passes(1)
        assert w.listed() == ["work"]
        seen = [
            (each.plural, each.subresource)
            for each in w.cluster.history(fenced)
            if each.actor == "system:kube-scheduler" and each.plural != "events"
        ]
        assert seen == [("pods", "status"), ("resourceclaims", "status"), ("pods", "binding")]

    play(NATIVE, story)


def test_a_scheduler_with_a_late_view_binds_past_a_fence_that_it_has_not_seen() -> None:
    """This is the race that a release settles: the write that the pod needed never comes."""

    async def story(w: World) -> None:
        w.claim(reservedFor=WORKLOAD)
        w.pod("p1", "shared")
        await w.passes(5)
        w.cluster.set_lag(2.0)
        w.pod("p2", "shared")
        await w.passes(1.9)
        w.reserve()
        await w.passes(1)
        assert w.listed() == []
        assert w.get("pods", "p2")["spec"]["nodeName"]

    play(NATIVE, story)


def test_a_late_view_is_caught_up_with_and_does_not_schedule_a_pod_twice() -> None:
    async def story(w: World) -> None:
        w.claim()
        for index in range(5):
            w.pod(f"p{index}", "shared")
        await w.passes(10)
        assert w.listed() == ["p0", "p1", "p2", "p3", "p4"]
        assert w.phases() == ["Running"] * 5
        bindings = [each for each in w.cluster.history() if each.subresource == "binding"]
        assert len(bindings) == 5

    play(timed(HOLD, scheduler_cache_lag=1.0), story)


def test_whether_a_pod_needs_a_write_is_decided_when_it_is_planned() -> None:
    """A list that is emptied between plan and binding is not noticed: upstream's window."""

    async def story(w: World) -> None:
        w.claim(reservedFor=WORKLOAD)
        w.pod("p1", "shared")
        await w.passes(1)

        def fence(point: FaultPoint) -> Fault | None:
            if (point.plural, point.subresource, point.verb) == ("pods", "status", "patch"):
                w.cluster.fault_components(None)
                w.reserve()
            return None

        w.pod("p2", "shared")
        w.cluster.fault_components(fence)
        await w.passes(1)
        assert w.listed() == []
        assert w.get("pods", "p2")["status"]["phase"] == "Running"

    play(NATIVE, story)


def test_a_list_that_was_expanded_to_pods_goes_on_listing_pods() -> None:
    async def story(w: World) -> None:
        w.claim(reservedFor=WORKLOAD)
        pod = w.pod("p1", "shared")
        await w.passes(1)
        w.reserve({"resource": "pods", "name": "p1", "uid": pod["metadata"]["uid"]})
        w.pod("p2", "shared")
        await w.passes(1)
        assert w.listed() == ["p1", "p2"]

    play(NATIVE, story)


def test_a_write_on_a_late_view_is_refused_and_tried_again_on_a_fresh_claim() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(5)
        w.pod("p2", "shared")
        await w.passes(0.9)
        w.api.patch("resourceclaims", "default", "shared", {"metadata": {"labels": {"a": "b"}}})
        await w.passes(2)
        assert w.listed() == ["p1", "p2"]

    play(timed(HOLD, scheduler_cache_lag=1.0), story)


def test_a_scheduler_without_the_feature_lists_pods_beside_a_workload() -> None:
    async def story(w: World) -> None:
        w.claim(reservedFor=WORKLOAD)
        w.pod("p1", "shared")
        await w.passes(1)
        w.cluster.switch(replace(w.cluster.features, scheduler_reserved_for=False))
        w.pod("p2", "shared")
        await w.passes(1)
        assert w.listed() == ["work", "p2"]

    play(NATIVE, story)


def test_a_scheduler_with_the_feature_adds_no_pod_beside_any_other_reference() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        first = w.get("resourceclaims", "shared")["status"]["reservedFor"]
        w.reserve(*first, {**WORKLOAD, "resource": "others"})
        before = len(w.writes("resourceclaims", "shared"))
        w.cluster.pause("resourceclaim-controller")
        w.pod("p2", "shared")
        await w.passes(1)
        assert w.listed() == ["p1", "work"]
        assert len(w.writes("resourceclaims", "shared")) == before
        assert w.get("pods", "p2")["status"]["phase"] == "Pending"
        assert "is not allowed to use ResourceClaim" in w.events("FailedPrepareDynamicResources")[0]

    play(NATIVE, story)


def test_a_pod_without_a_device_says_so_and_takes_the_first_that_becomes_free() -> None:
    async def story(w: World) -> None:
        w.claim("first")
        w.claim("second")
        w.pod("p1", "first")
        w.pod("p2", "second")
        await w.passes(1)
        assert w.reason("p2") == (
            "Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims. still not "
            "schedulable, preemption: 0/1 nodes are available: 1 Preemption is not helpful for "
            "scheduling."
        )
        w.api.delete("pods", "default", "p1")
        await w.passes(1)
        assert (w.devices("second"), w.phases()) == (["node-0/dev-0"], ["Running"])

    play(ONE_NODE, story)


def test_a_pod_waits_without_a_word_for_a_claim_that_is_missing_or_going() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        w.pod("p2", "later")
        await w.passes(1)
        w.api.delete("resourceclaims", "default", "shared")
        w.pod("p3", "shared")
        await w.passes(5)
        assert (w.reason("p2"), w.reason("p3"), w.events("FailedScheduling")) == ("", "", [])
        w.claim("later")
        await w.passes(1)
        assert w.get("pods", "p2")["status"]["phase"] == "Running"

    play(HOLD, story)


def test_pods_beyond_256_are_refused_by_the_server_and_tried_again() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.workload("deployments", "work", "shared", replicas=258)
        await w.passes(4)
        assert len(w.listed()) == 256
        assert w.phases() == ["Pending"] * 2 + ["Running"] * 256
        waiting = next(each for each in w.pods() if each["status"]["phase"] == "Pending")
        assert w.reason(waiting["metadata"]["name"]) == (
            'SchedulerError: running PreBind plugin "DynamicResources": add reservation to claim '
            'default/shared: ResourceClaim.resource.k8s.io "shared" is invalid: '
            "status.reservedFor: Too many: 257: must have at most 256 items"
        )
        w.api.patch("deployments", "default", "work", {"spec": {"replicas": 256}})
        await w.passes(12)
        assert w.phases() == ["Running"] * 256

    play(HOLD, story)


def test_conflicts_come_in_a_storm_and_pass() -> None:
    """Real: 614 and 738 conflicts, all pods bound after 20 and 31 seconds."""

    async def story(w: World) -> None:
        w.claim()
        w.workload("deployments", "work", "shared", replicas=60)
        await w.passes(2)
        assert 5 < len(w.listed()) < 40
        await w.passes(38)
        assert len(w.listed()) == 60
        assert any("the object has been modified" in each for each in w.events("FailedScheduling"))

    play(replace(HOLD, conflict_storm=True), story)


def test_a_cordoned_node_gets_no_pod_and_an_idle_claim_on_it_is_given_up() -> None:
    """PostFilter: an allocation that nobody but the pod could hold is taken back."""

    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        node = w.get("pods", "p1")["spec"]["nodeName"]
        w.cluster.pause("resourceclaim-controller")
        w.cluster.force_delete("default", "p1")
        w.reserve()
        w.cluster.cordon(node)
        w.pod("p2", "shared")
        await w.passes(1)
        assert w.listed() == ["p2"]
        assert w.get("pods", "p2")["spec"]["nodeName"] != node

    play(HOLD, story)


def test_a_hold_keeps_a_claim_on_its_cordoned_node() -> None:
    async def story(w: World) -> None:
        w.claim()
        w.pod("p1", "shared")
        await w.passes(1)
        node = w.get("pods", "p1")["spec"]["nodeName"]
        w.reserve(*w.get("resourceclaims", "shared")["status"]["reservedFor"], WORKLOAD)
        w.cluster.cordon(node)
        w.api.delete("pods", "default", "p1")
        await w.passes(1)
        w.pod("p2", "shared")
        await w.passes(5)
        assert w.listed() == ["work"]
        assert w.reason("p2").startswith("Unschedulable: 0/3 nodes are available: 1 node(s) were")
        assert "2 resourceclaim not available on the node" in w.reason("p2")

    play(HOLD, story)


def test_a_group_is_listed_once_for_all_of_its_pods() -> None:
    async def story(w: World) -> None:
        w.claim()
        shares = [{"name": "c", "resourceClaimName": "shared"}]
        spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
        w.create("podgroups", "group", spec)
        w.workload(
            "deployments",
            "work",
            "shared",
            replicas=20,
            pod={"schedulingGroup": {"podGroupName": "group"}},
        )
        await w.passes(1)
        assert (w.listed(), w.phases()) == (["group"], ["Running"] * 20)

    play(PODGROUP, story)


def test_an_idle_group_loses_the_claim_to_any_unschedulable_pod_and_the_allocation_stays() -> None:
    async def story(w: World) -> None:
        w.claim()
        shares = [{"name": "c", "resourceClaimName": "shared"}]
        spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": shares}
        w.create("podgroups", "group", spec)
        member = {"schedulingGroup": {"podGroupName": "group"}}
        w.pod("p1", "shared", **member)
        await w.passes(1)
        w.cluster.force_delete("default", "p1")
        w.pod("p2", "shared", nodeSelector={"no": "where"}, **member)
        await w.passes(1)
        assert (w.listed(), w.allocated()) == ([], True)

    play(PODGROUP, story)


def test_the_same_seed_makes_the_same_history() -> None:
    def history() -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []

        async def story(w: World) -> None:
            w.claim()
            w.workload("deployments", "work", "shared", replicas=10)
            await w.passes(5)
            found.extend((each.plural, each.name, each.verb) for each in w.cluster.history())

        options = ClusterOptions(dialect=Dialect.HOLD, conflict_storm=True, seed=7)
        play(options, story)
        return found

    assert history() == history()


def test_a_finalizer_that_goes_just_before_the_allocation_is_put_there_again() -> None:
    """Who deallocated takes it off at that moment; without it KCM never deallocates."""

    async def story(w: World) -> None:
        def unprotect(point: FaultPoint) -> Fault | None:
            if (point.plural, point.subresource) == ("resourceclaims", "status"):
                w.cluster.fault_components(None)
                bare = {"metadata": {"finalizers": None}}
                w.api.patch("resourceclaims", "default", "shared", bare)
            return None

        w.claim()
        w.cluster.fault_components(unprotect)
        w.pod("p1", "shared")
        await w.passes(1)
        assert w.listed() == ["p1"]
        assert w.get("resourceclaims", "shared")["metadata"]["finalizers"] == [FINALIZER]

    play(HOLD, story)


@pytest.mark.parametrize(("version", "generations"), [((1, 32), [None, None]), ((1, 34), [1, 2])])
def test_a_pod_that_loses_its_gates_has_a_generation_from_133_on(
    version: tuple[int, int], generations: list[int | None]
) -> None:
    async def story(w: World) -> None:
        w.pod("p1", schedulingGates=[{"name": "g"}])
        found = [w.get("pods", "p1")["metadata"].get("generation")]
        w.api.patch("pods", "default", "p1", {"spec": {"schedulingGates": []}}, kind="merge")
        found.append(w.get("pods", "p1")["metadata"].get("generation"))
        assert found == generations

    play(replace(HOLD, kubernetes_version=version), story)
