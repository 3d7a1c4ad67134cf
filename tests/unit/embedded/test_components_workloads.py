"""Workload controllers: rollouts, ordinals, completions, and who goes with whom."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from claimctl.embedded.storage.requests import DeleteOptions
from claimctl.embedded.storage.store import Revision

from .worlds import HOLD, Object, World, play, timed

QUICK = timed(HOLD, job_pod_run=1.0, job_sync=0.2, job_backoff=10.0)
RESTARTED = {"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}


def extremes(pods: list[Object], history: Iterable[Revision]) -> tuple[int, int]:
    """The most pods at once that were not going, and the fewest of them that were ready."""
    there = {each["metadata"]["name"]: is_ready(each) for each in pods}
    most, fewest = len(there), sum(there.values())
    for each in history:
        if each.plural != "pods":
            continue
        if each.type == "DELETED" or "deletionTimestamp" in each.object()["metadata"]:
            there.pop(each.name, None)
        else:
            there[each.name] = is_ready(each.object())
        most, fewest = max(most, len(there)), min(fewest, sum(there.values()))
    return most, fewest


def is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_a_rollout_stays_between_its_fences_and_replaces_every_pod() -> None:
    async def story(w: World) -> None:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}
        w.workload("deployments", "work", replicas=10, strategy=rolling)
        await w.passes(1)
        pods, since = w.pods(), w.cluster.store.revision
        before = {each["metadata"]["uid"] for each in pods}
        w.api.patch("deployments", "default", "work", RESTARTED)
        await w.passes(10)
        assert extremes(pods, w.cluster.history(since)) == (12, 9)
        status = w.get("deployments", "work")["status"]
        assert (status["updatedReplicas"], status["availableReplicas"]) == (10, 10)
        assert before & {each["metadata"]["uid"] for each in w.pods()} == set()
        assert w.phases() == ["Running"] * 10
        revision = "deployment.kubernetes.io/revision"
        assert w.get("deployments", "work")["metadata"]["annotations"][revision] == "2"

    play(HOLD, story)


def test_old_and_new_pods_never_meet_with_recreate() -> None:
    async def story(w: World) -> None:
        w.workload("deployments", "work", replicas=3, strategy={"type": "Recreate"})
        await w.passes(1)
        since = w.cluster.store.revision
        w.api.patch("deployments", "default", "work", RESTARTED)
        await w.passes(5)
        changes = [each.type for each in w.cluster.history(since) if each.plural == "pods"]
        first = changes.index("ADDED")
        assert changes[:first].count("DELETED") == 3
        assert w.phases() == ["Running"] * 3

    play(HOLD, story)


def test_a_paused_deployment_is_scaled_but_not_rolled() -> None:
    async def story(w: World) -> None:
        w.workload("deployments", "work", replicas=2)
        await w.passes(1)
        w.api.patch("deployments", "default", "work", {"spec": {"paused": True}})
        w.api.patch("deployments", "default", "work", {**RESTARTED})
        w.api.patch("deployments", "default", "work", {"spec": {"replicas": 4}})
        await w.passes(2)
        assert len(w.api.list("replicasets", "default")) == 1
        assert w.phases() == ["Running"] * 4
        w.api.patch("deployments", "default", "work", {"spec": {"paused": None}})
        await w.passes(5)
        assert len(w.api.list("replicasets", "default")) == 2
        assert w.phases() == ["Running"] * 4

    play(HOLD, story)


def test_a_rollback_finds_the_old_replica_set() -> None:
    async def story(w: World) -> None:
        w.workload("deployments", "work", replicas=2)
        await w.passes(1)
        w.api.patch("deployments", "default", "work", RESTARTED)
        await w.passes(5)
        back = {"spec": {"template": {"metadata": {"annotations": {"restarted": None}}}}}
        w.api.patch("deployments", "default", "work", back)
        await w.passes(5)
        sizes = [each["spec"]["replicas"] for each in w.api.list("replicasets", "default")]
        assert sorted(sizes) == [0, 2]
        revision = "deployment.kubernetes.io/revision"
        assert w.get("deployments", "work")["metadata"]["annotations"][revision] == "3"

    play(HOLD, story)


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_ordinals_come_up_in_order_or_at_once(policy: str) -> None:
    async def story(w: World) -> None:
        spec: Object = {"serviceName": "s", "podManagementPolicy": policy, "replicas": 3}
        w.workload("statefulsets", "set", **spec)
        await w.passes(1)
        changes = [
            (each.name, each.object()["status"]["phase"])
            for each in w.cluster.history()
            if each.plural == "pods" and each.subresource != "binding"
        ]
        created = [name for name, phase in changes if phase == "Pending"]
        assert created == ["set-0", "set-1", "set-2"]
        before_second = changes[: changes.index(("set-1", "Pending"))]
        assert (("set-0", "Running") in before_second) is (policy == "OrderedReady")
        assert w.phases() == ["Running"] * 3

    play(HOLD, story)


def test_a_stateful_set_updates_from_the_highest_ordinal_down() -> None:
    async def story(w: World) -> None:
        w.workload("statefulsets", "set", replicas=3, serviceName="s")
        await w.passes(1)
        since = w.cluster.store.revision
        w.api.patch("statefulsets", "default", "set", RESTARTED)
        await w.passes(5)
        gone = [
            each.name
            for each in w.cluster.history(since)
            if each.plural == "pods" and each.type == "DELETED"
        ]
        assert gone == ["set-2", "set-1", "set-0"]
        status = w.get("statefulsets", "set")["status"]
        assert status["currentRevision"] == status["updateRevision"]
        assert (status["updatedReplicas"], w.phases()) == (3, ["Running"] * 3)

    play(HOLD, story)


def test_a_job_completes_and_counts() -> None:
    async def story(w: World) -> None:
        w.workload("jobs", "job", completions=5, parallelism=2, pod={"restartPolicy": "Never"})
        await w.passes(12)
        status = w.get("jobs", "job")["status"]
        assert (status["succeeded"], status.get("active"), status.get("failed")) == (5, None, None)
        assert [each["type"] for each in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
        assert w.phases() == ["Succeeded"] * 5
        assert all("finalizers" not in each["metadata"] for each in w.pods())

    play(QUICK, story)


def test_an_indexed_job_gives_each_index_once() -> None:
    async def story(w: World) -> None:
        indexed: Object = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
        w.workload("jobs", "job", pod={"restartPolicy": "Never"}, **indexed)
        await w.passes(5)
        index = "batch.kubernetes.io/job-completion-index"
        found = sorted(each["metadata"]["annotations"][index] for each in w.pods())
        assert found == ["0", "1", "2"]
        assert w.get("jobs", "job")["status"]["completedIndexes"] == "0-2"

    play(QUICK, story)


def test_a_job_fails_after_its_retries_with_growing_pauses() -> None:
    async def story(w: World) -> None:
        pod = {"restartPolicy": "Never"}
        failing = {"annotations": {"embedded.claimctl.io/exit-code": "1"}}
        w.workload("jobs", "job", backoffLimit=2, pod=pod, metadata=failing)
        await w.passes(60)
        status = w.get("jobs", "job")["status"]
        assert status["failed"] == 3
        assert [each["type"] for each in status["conditions"]] == ["FailureTarget", "Failed"]
        made = [e.at for e in w.cluster.history() if (e.plural, e.type) == ("pods", "ADDED")]
        pauses = [round(b - a) for a, b in pairwise(made)]
        assert pauses == [11, 21]

    play(QUICK, story)


def test_a_suspended_job_gives_its_pods_up_and_goes_on_when_it_is_resumed() -> None:
    async def story(w: World) -> None:
        w.workload("jobs", "job", completions=2, parallelism=2, pod={"restartPolicy": "Never"})
        await w.passes(0.5)
        w.api.patch("jobs", "default", "job", {"spec": {"suspend": True}})
        await w.passes(2)
        status = w.get("jobs", "job")["status"]
        assert (w.pods(), status.get("failed"), status.get("startTime")) == ([], None, None)
        w.api.patch("jobs", "default", "job", {"spec": {"suspend": False}})
        await w.passes(3)
        assert w.get("jobs", "job")["status"]["succeeded"] == 2

    play(QUICK, story)


def test_a_finished_job_goes_after_its_time_and_takes_its_pods_along() -> None:
    async def story(w: World) -> None:
        pod = {"restartPolicy": "Never"}
        w.workload("jobs", "job", ttlSecondsAfterFinished=10, pod=pod)
        await w.passes(5)
        assert len(w.pods()) == 1
        await w.passes(10)
        assert (w.pods(), w.api.find("jobs", "default", "job")) == ([], None)

    play(QUICK, story)


def test_the_pods_of_a_job_that_leaves_them_alone_are_not_kept_by_its_finalizer() -> None:
    async def story(w: World) -> None:
        w.workload("jobs", "job", pod={"restartPolicy": "Never"})
        await w.passes(0.5)
        w.api.delete("jobs", "default", "job", DeleteOptions(propagation="Orphan"))
        await w.passes(0.5)
        (pod,) = w.pods()
        assert "ownerReferences" not in pod["metadata"]
        assert "finalizers" not in pod["metadata"]
        assert "deletionTimestamp" not in pod["metadata"]

    play(QUICK, story)


def test_a_deployment_takes_everything_below_it_along() -> None:
    async def story(w: World) -> None:
        w.workload("deployments", "work", replicas=3)
        await w.passes(1)
        w.api.delete("deployments", "default", "work")
        await w.passes(1)
        assert (w.pods(), w.api.list("replicasets", "default")) == ([], [])

    play(HOLD, story)


def test_orphans_stay_and_are_adopted() -> None:
    async def story(w: World) -> None:
        w.workload("deployments", "work", replicas=2)
        await w.passes(1)
        before = [each["metadata"]["uid"] for each in w.pods()]
        orphan = DeleteOptions(propagation="Orphan")
        w.api.delete("deployments", "default", "work", orphan)
        await w.passes(1)
        (left,) = w.api.list("replicasets", "default")
        assert "ownerReferences" not in left["metadata"]
        w.workload("deployments", "work", replicas=2)
        await w.passes(1)
        (adopted,) = w.api.list("replicasets", "default")
        assert adopted["metadata"]["ownerReferences"][0]["name"] == "work"
        assert [each["metadata"]["uid"] for each in w.pods()] == before

    play(HOLD, story)


def test_an_owner_that_never_was_takes_its_dependents_along() -> None:
    async def story(w: World) -> None:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nosuch", "uid": "nosuch"}
        w.pod("p1", metadata={"ownerReferences": [owner]})
        await w.passes(1)
        assert w.pods() == []

    play(HOLD, story)


def test_an_object_with_another_owner_left_only_forgets_the_one_that_went() -> None:
    async def story(w: World) -> None:
        def made(name: str) -> dict[str, Any]:
            body = {"metadata": {"name": name, "namespace": "default"}}
            created = w.api.create("configmaps", body)
            uid = created["metadata"]["uid"]
            return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}

        w.pod("p1", metadata={"ownerReferences": [made("one"), made("two")]})
        await w.passes(1)
        w.api.delete("configmaps", "default", "one")
        await w.passes(1)
        (pod,) = w.pods()
        assert [each["name"] for each in pod["metadata"]["ownerReferences"]] == ["two"]

    play(HOLD, story)


def test_a_namespace_ends_with_its_pods_first() -> None:
    async def story(w: World) -> None:
        w.api.create("namespaces", {"metadata": {"name": "doomed"}})
        await w.passes(1)
        names = [each["metadata"]["name"] for each in w.api.list("configmaps", "doomed")]
        assert names == ["kube-root-ca.crt"]
        spec = {"containers": [{"name": "c", "image": "x"}]}
        w.api.create("pods", {"metadata": {"name": "p1", "namespace": "doomed"}, "spec": spec})
        w.api.create("configmaps", {"metadata": {"name": "a", "namespace": "doomed"}})
        await w.passes(1)
        since = w.cluster.store.revision
        w.api.delete("namespaces", "", "doomed")
        await w.passes(2)
        gone = [
            each.plural
            for each in w.cluster.history(since)
            if each.type == "DELETED" and each.plural != "events"
        ]
        assert (gone[0], gone[-1]) == ("pods", "namespaces")
        assert w.api.find("namespaces", "", "doomed") is None

    play(HOLD, story)


def test_a_budget_says_how_many_pods_may_go() -> None:
    async def story(w: World) -> None:
        w.workload("deployments", "work", replicas=4)
        spec = {"minAvailable": 3, "selector": {"matchLabels": {"app": "work"}}}
        w.create("poddisruptionbudgets", "budget", spec)
        await w.passes(1)
        status = w.get("poddisruptionbudgets", "budget")["status"]
        assert {key: status[key] for key in status if key != "conditions"} == {
            "observedGeneration": 1,
            "disruptionsAllowed": 1,
            "currentHealthy": 4,
            "desiredHealthy": 3,
            "expectedPods": 4,
        }

    play(HOLD, story)


def test_an_index_gets_another_pod_after_the_back_off_while_the_one_before_is_still_going() -> None:
    async def story(w: World) -> None:
        annotations = {"embedded.claimctl.io/run-seconds": "1000"}
        indexed: Object = {
            "completionMode": "Indexed",
            "completions": 1,
            "backoffLimitPerIndex": 2,
        }
        never = {"restartPolicy": "Never"}
        w.workload("jobs", "work", metadata={"annotations": annotations}, pod=never, **indexed)
        await w.passes(1)
        (first,) = w.pods()
        w.cluster.pause("kubelet")
        w.api.delete("pods", "default", first["metadata"]["name"])
        await w.passes(9)
        assert len(w.pods()) == 1
        await w.passes(3)
        found = sorted("deletionTimestamp" in each["metadata"] for each in w.pods())
        assert found == [False, True]

    play(QUICK, story)
