"""Workload controllers: rollouts, ordinals, completions, and who goes with whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.storage.requests import DeleteOptions
from kube_in_process.storage.store import Revision

from .worlds import HOLD, PODGROUP, Object, World, timed

pytestmark = pytest.mark.kube_cluster(HOLD)

QUICK = timed(HOLD, job_pod_run=1.0, job_sync=0.2, job_backoff=10.0)
RESTARTED = {"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}


def extremes(pods: list[Object], history: Iterable[Revision]) -> tuple[int, int]:
    """The most pods at once that were not going, and the fewest of them that were ready."""
    there = {pod["metadata"]["name"]: is_ready(pod) for pod in pods}
    most, fewest = len(there), sum(there.values())
    for revision in history:
        if revision.plural != "pods":
            continue
        if revision.type == "DELETED" or "deletionTimestamp" in revision.object()["metadata"]:
            there.pop(revision.name, None)
        else:
            there[revision.name] = is_ready(revision.object())
        most, fewest = max(most, len(there)), min(fewest, sum(there.values()))
    return most, fewest


def is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


async def test_a_rollout_stays_between_its_fences_and_replaces_every_pod(world: World) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}
    world.workload("deployments", "work", replicas=10, strategy=rolling)
    await world.passes(1)
    pods, since = world.pods(), world.cluster.store.revision
    before = {pod["metadata"]["uid"] for pod in pods}
    world.api.patch("deployments", "default", "work", RESTARTED)
    await world.passes(10)
    assert extremes(pods, world.cluster.history(since)) == (12, 9)
    status = world.get("deployments", "work")["status"]
    assert (status["updatedReplicas"], status["availableReplicas"]) == (10, 10)
    assert before & {pod["metadata"]["uid"] for pod in world.pods()} == set()
    assert world.phases() == ["Running"] * 10
    revision = "deployment.kubernetes.io/revision"
    assert world.get("deployments", "work")["metadata"]["annotations"][revision] == "2"


async def test_old_and_new_pods_never_meet_with_recreate(world: World) -> None:
    world.workload("deployments", "work", replicas=3, strategy={"type": "Recreate"})
    await world.passes(1)
    since = world.cluster.store.revision
    world.api.patch("deployments", "default", "work", RESTARTED)
    await world.passes(5)
    changes = [
        revision.type for revision in world.cluster.history(since) if revision.plural == "pods"
    ]
    first = changes.index("ADDED")
    assert changes[:first].count("DELETED") == 3
    assert world.phases() == ["Running"] * 3


@pytest.mark.kube_cluster(replace(HOLD, kubernetes_version=(1, 37), alphas=True))
@pytest.mark.parametrize("management", ["OrderedReady", "Parallel"])
async def test_old_and_new_pods_of_a_stateful_set_never_meet_with_recreate(
    world: World, management: str
) -> None:
    """By the text of KEP-3541. A change of the strategy alone starts no rollout."""
    world.workload("statefulsets", "work", replicas=3, podManagementPolicy=management)
    await world.passes(5)
    since = world.cluster.store.revision
    recreate = {"spec": {"updateStrategy": {"type": "Recreate", "rollingUpdate": None}}}
    world.api.patch("statefulsets", "default", "work", recreate)
    await world.passes(5)
    assert [
        revision for revision in world.cluster.history(since) if revision.plural == "pods"
    ] == []
    world.api.patch("statefulsets", "default", "work", RESTARTED)
    await world.passes(5)
    changes = [
        revision.type for revision in world.cluster.history(since) if revision.plural == "pods"
    ]
    assert changes[: changes.index("ADDED")].count("DELETED") == 3
    assert world.phases() == ["Running"] * 3
    status = world.get("statefulsets", "work")["status"]
    assert status["currentRevision"] == status["updateRevision"]


async def test_a_server_without_its_gate_refuses_recreate_of_a_stateful_set(world: World) -> None:
    with pytest.raises(StatusError, match="must be 'RollingUpdate' or 'OnDelete'"):
        world.workload("statefulsets", "work", updateStrategy={"type": "Recreate"})


async def test_a_paused_deployment_is_scaled_but_not_rolled(world: World) -> None:
    world.workload("deployments", "work", replicas=2)
    await world.passes(1)
    world.api.patch("deployments", "default", "work", {"spec": {"paused": True}})
    world.api.patch("deployments", "default", "work", {**RESTARTED})
    world.api.patch("deployments", "default", "work", {"spec": {"replicas": 4}})
    await world.passes(2)
    assert len(world.api.list("replicasets", "default")) == 1
    assert world.phases() == ["Running"] * 4
    world.api.patch("deployments", "default", "work", {"spec": {"paused": None}})
    await world.passes(5)
    assert len(world.api.list("replicasets", "default")) == 2
    assert world.phases() == ["Running"] * 4


async def test_a_rollback_finds_the_old_replica_set(world: World) -> None:
    world.workload("deployments", "work", replicas=2)
    await world.passes(1)
    world.api.patch("deployments", "default", "work", RESTARTED)
    await world.passes(5)
    back = {"spec": {"template": {"metadata": {"annotations": {"restarted": None}}}}}
    world.api.patch("deployments", "default", "work", back)
    await world.passes(5)
    sizes = [
        replica_set["spec"]["replicas"] for replica_set in world.api.list("replicasets", "default")
    ]
    assert sorted(sizes) == [0, 2]
    revision = "deployment.kubernetes.io/revision"
    assert world.get("deployments", "work")["metadata"]["annotations"][revision] == "3"


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
async def test_ordinals_come_up_in_order_or_at_once(world: World, policy: str) -> None:
    spec: Object = {"serviceName": "s", "podManagementPolicy": policy, "replicas": 3}
    world.workload("statefulsets", "set", **spec)
    await world.passes(1)
    changes = [
        (revision.name, revision.object()["status"]["phase"])
        for revision in world.cluster.history()
        if revision.plural == "pods" and revision.subresource != "binding"
    ]
    created = [name for name, phase in changes if phase == "Pending"]
    assert created == ["set-0", "set-1", "set-2"]
    before_second = changes[: changes.index(("set-1", "Pending"))]
    assert (("set-0", "Running") in before_second) is (policy == "OrderedReady")
    assert world.phases() == ["Running"] * 3


async def test_a_stateful_set_tells_why_a_pod_cannot_be_made(world: World) -> None:
    name = "s" * 63
    world.workload("statefulsets", name, replicas=1, serviceName="s")
    await world.passes(5)
    [message] = world.events("FailedCreate")
    text = f'Create Pod {name}-0 in StatefulSet {name} failed error: Pod "{name}-0" is invalid: '
    assert message.startswith(text)
    assert world.pods() == []


@pytest.mark.kube_cluster(replace(HOLD, default_storage_class=True))
async def test_each_pod_of_a_stateful_set_has_a_volume_claim_that_outlives_it(world: World) -> None:
    template = {
        "metadata": {"name": "data", "labels": {"disk": "fast"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    world.workload("statefulsets", "web", replicas=2, volumeClaimTemplates=[template])
    await world.passes(2)
    assert world.phases() == ["Running"] * 2
    sources = [pod["spec"]["volumes"][0]["persistentVolumeClaim"] for pod in world.pods()]
    assert [source["claimName"] for source in sources] == ["data-web-0", "data-web-1"]
    world.api.patch("statefulsets", "default", "web", {"spec": {"replicas": 0}})
    await world.passes(5)
    claims = world.api.list("persistentvolumeclaims")
    assert [claim["metadata"]["name"] for claim in claims] == ["data-web-0", "data-web-1"]
    assert claims[0]["metadata"]["labels"]["disk"] == "fast"


async def test_a_stateful_set_updates_from_the_highest_ordinal_down(world: World) -> None:
    world.workload("statefulsets", "set", replicas=3, serviceName="s")
    await world.passes(1)
    since = world.cluster.store.revision
    world.api.patch("statefulsets", "default", "set", RESTARTED)
    await world.passes(5)
    gone = [
        revision.name
        for revision in world.cluster.history(since)
        if revision.plural == "pods" and revision.type == "DELETED"
    ]
    assert gone == ["set-2", "set-1", "set-0"]
    status = world.get("statefulsets", "set")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert (status["updatedReplicas"], world.phases()) == (3, ["Running"] * 3)


@pytest.mark.kube_cluster(QUICK)
async def test_a_job_completes_and_counts(world: World) -> None:
    world.workload("jobs", "job", completions=5, parallelism=2, pod={"restartPolicy": "Never"})
    await world.passes(12)
    status = world.get("jobs", "job")["status"]
    assert (status["succeeded"], status.get("active"), status.get("failed")) == (5, None, None)
    assert [condition["type"] for condition in status["conditions"]] == [
        "SuccessCriteriaMet",
        "Complete",
    ]
    assert world.phases() == ["Succeeded"] * 5
    assert all("finalizers" not in pod["metadata"] for pod in world.pods())


@pytest.mark.kube_cluster(QUICK)
async def test_an_indexed_job_gives_each_index_once(world: World) -> None:
    indexed: Object = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    world.workload("jobs", "job", pod={"restartPolicy": "Never"}, **indexed)
    await world.passes(5)
    index = "batch.kubernetes.io/job-completion-index"
    indexes = sorted(pod["metadata"]["annotations"][index] for pod in world.pods())
    assert indexes == ["0", "1", "2"]
    assert world.get("jobs", "job")["status"]["completedIndexes"] == "0-2"


@pytest.mark.kube_cluster(QUICK)
async def test_a_job_fails_after_its_retries_with_growing_pauses(world: World) -> None:
    pod = {"restartPolicy": "Never"}
    failing = {"annotations": {"kube-in-process/exit-code": "1"}}
    world.workload("jobs", "job", backoffLimit=2, pod=pod, metadata=failing)
    await world.passes(60)
    status = world.get("jobs", "job")["status"]
    assert status["failed"] == 3
    assert [condition["type"] for condition in status["conditions"]] == ["FailureTarget", "Failed"]
    times = [e.at for e in world.cluster.history() if (e.plural, e.type) == ("pods", "ADDED")]
    pauses = [round(b - a) for a, b in pairwise(times)]
    assert pauses == [11, 21]


@pytest.mark.kube_cluster(QUICK)
async def test_a_suspended_job_gives_its_pods_up_and_goes_on_when_it_is_resumed(
    world: World,
) -> None:
    world.workload("jobs", "job", completions=2, parallelism=2, pod={"restartPolicy": "Never"})
    await world.passes(0.5)
    world.api.patch("jobs", "default", "job", {"spec": {"suspend": True}})
    await world.passes(2)
    status = world.get("jobs", "job")["status"]
    assert (world.pods(), status.get("failed"), status.get("startTime")) == ([], None, None)
    world.api.patch("jobs", "default", "job", {"spec": {"suspend": False}})
    await world.passes(3)
    assert world.get("jobs", "job")["status"]["succeeded"] == 2


@pytest.mark.kube_cluster(replace(PODGROUP, kubernetes_version=(1, 37), job_pod_groups=True))
async def test_a_job_has_a_pod_group_while_it_is_not_suspended(world: World) -> None:
    """By the text of KEP-5547: the group is set on the pods, and not in the template."""
    world.workload("jobs", "job", parallelism=2, pod={"restartPolicy": "Never"})
    await world.passes(0.5)
    (group,) = world.api.list("podgroups")
    named = {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in world.pods()}
    assert named == {group["metadata"]["name"]}
    template = world.get("jobs", "job")["spec"]["template"]
    assert "schedulingGroup" not in template["spec"]
    world.api.patch("jobs", "default", "job", {"spec": {"suspend": True}})
    await world.passes(2)
    assert (world.pods(), world.api.list("podgroups")) == ([], [])


@pytest.mark.kube_cluster(QUICK)
async def test_a_finished_job_goes_after_its_time_and_takes_its_pods_along(world: World) -> None:
    pod = {"restartPolicy": "Never"}
    world.workload("jobs", "job", ttlSecondsAfterFinished=10, pod=pod)
    await world.passes(5)
    assert len(world.pods()) == 1
    await world.passes(10)
    assert (world.pods(), world.api.find("jobs", "default", "job")) == ([], None)


@pytest.mark.kube_cluster(QUICK)
async def test_the_pods_of_a_job_that_leaves_them_alone_are_not_kept_by_its_finalizer(
    world: World,
) -> None:
    world.workload("jobs", "job", pod={"restartPolicy": "Never"})
    await world.passes(0.5)
    world.api.delete("jobs", "default", "job", DeleteOptions(propagation="Orphan"))
    await world.passes(0.5)
    (pod,) = world.pods()
    assert "ownerReferences" not in pod["metadata"]
    assert "finalizers" not in pod["metadata"]
    assert "deletionTimestamp" not in pod["metadata"]


async def test_a_pod_of_a_deleted_job_loses_the_finalizer_before_it_is_deleted(
    world: World,
) -> None:
    world.workload("jobs", "job", completions=1, pod={"restartPolicy": "Never"})
    await world.passes(1)
    pod = world.pods()[0]["metadata"]["name"]
    since = world.cluster.store.revision
    world.api.delete("jobs", "default", "job", DeleteOptions(propagation="Background"))
    await world.passes(5)
    versions = [
        revision.object() for revision in world.cluster.history(since) if revision.name == pod
    ]
    first = next(version for version in versions if "deletionTimestamp" in version["metadata"])
    assert "finalizers" not in first["metadata"]


async def test_an_adopted_replica_set_grows_before_its_successor_takes_over(world: World) -> None:
    world.workload("deployments", "work", replicas=2)
    await world.passes(1)
    world.api.patch("deployments", "default", "work", RESTARTED)
    await world.passes(5)
    world.api.delete("deployments", "default", "work", DeleteOptions(propagation="Orphan"))
    await world.passes(5)
    since = world.cluster.store.revision
    fences = {"maxSurge": 2, "maxUnavailable": 2}
    rolling = {"type": "RollingUpdate", "rollingUpdate": fences}
    marks = {"annotations": {"restarted": "again"}}
    world.workload("deployments", "work", replicas=4, strategy=rolling, metadata=marks)
    await world.passes(5)
    history = [revision for revision in world.cluster.history(since) if revision.plural == "pods"]
    counts = Counter(
        revision.object()["metadata"]["annotations"]["restarted"]
        for revision in history
        if revision.type == "ADDED"
    )
    assert counts == {"now": 2, "again": 4}


async def test_a_deployment_takes_everything_below_it_along(world: World) -> None:
    world.workload("deployments", "work", replicas=3)
    await world.passes(1)
    world.api.delete("deployments", "default", "work")
    await world.passes(1)
    assert (world.pods(), world.api.list("replicasets", "default")) == ([], [])


async def test_orphans_stay_and_are_adopted(world: World) -> None:
    world.workload("deployments", "work", replicas=2)
    await world.passes(1)
    before = [pod["metadata"]["uid"] for pod in world.pods()]
    orphan = DeleteOptions(propagation="Orphan")
    world.api.delete("deployments", "default", "work", orphan)
    await world.passes(1)
    (left,) = world.api.list("replicasets", "default")
    assert "ownerReferences" not in left["metadata"]
    world.workload("deployments", "work", replicas=2)
    await world.passes(1)
    (adopted,) = world.api.list("replicasets", "default")
    assert adopted["metadata"]["ownerReferences"][0]["name"] == "work"
    assert [pod["metadata"]["uid"] for pod in world.pods()] == before


async def test_an_owner_that_never_was_takes_its_dependents_along(world: World) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nosuch", "uid": "nosuch"}
    world.pod("p1", metadata={"ownerReferences": [owner]})
    await world.passes(1)
    assert world.pods() == []


async def test_an_object_with_another_owner_left_only_forgets_the_one_that_went(
    world: World,
) -> None:
    def config_map(name: str) -> dict[str, Any]:
        body = {"metadata": {"name": name, "namespace": "default"}}
        created = world.api.create("configmaps", body)
        uid = created["metadata"]["uid"]
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}

    world.pod("p1", metadata={"ownerReferences": [config_map("one"), config_map("two")]})
    await world.passes(1)
    world.api.delete("configmaps", "default", "one")
    await world.passes(1)
    (pod,) = world.pods()
    assert [reference["name"] for reference in pod["metadata"]["ownerReferences"]] == ["two"]


async def test_a_namespace_ends_with_its_pods_first(world: World) -> None:
    world.api.create("namespaces", {"metadata": {"name": "doomed"}})
    await world.passes(1)
    names = [
        config_map["metadata"]["name"] for config_map in world.api.list("configmaps", "doomed")
    ]
    assert names == ["kube-root-ca.crt"]
    spec = {"containers": [{"name": "c", "image": "x"}]}
    world.api.create("pods", {"metadata": {"name": "p1", "namespace": "doomed"}, "spec": spec})
    world.api.create("configmaps", {"metadata": {"name": "a", "namespace": "doomed"}})
    await world.passes(1)
    since = world.cluster.store.revision
    world.api.delete("namespaces", "", "doomed")
    await world.passes(2)
    gone = [
        revision.plural
        for revision in world.cluster.history(since)
        if revision.type == "DELETED" and revision.plural != "events"
    ]
    assert (gone[0], gone[-1]) == ("pods", "namespaces")
    assert world.api.find("namespaces", "", "doomed") is None


async def test_a_budget_says_how_many_pods_may_go(world: World) -> None:
    world.workload("deployments", "work", replicas=4)
    spec = {"minAvailable": 3, "selector": {"matchLabels": {"app": "work"}}}
    world.create("poddisruptionbudgets", "budget", spec)
    await world.passes(1)
    status = world.get("poddisruptionbudgets", "budget")["status"]
    assert {key: status[key] for key in status if key != "conditions"} == {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 4,
        "desiredHealthy": 3,
        "expectedPods": 4,
    }


async def test_a_budget_notices_that_the_only_pod_of_a_stateful_set_is_gone(world: World) -> None:
    world.workload("statefulsets", "db", replicas=1, serviceName="db")
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "db"}}}
    await world.passes(1)
    world.create("poddisruptionbudgets", "pdb", spec)
    await world.passes(1)
    assert world.events("NoPods") == []
    world.api.delete("pods", "default", "db-0")
    await world.passes(5)
    assert world.events("NoPods") == ["No matching pods found"]
    assert world.phases() == ["Running"]


@pytest.mark.kube_cluster(QUICK)
async def test_an_index_gets_another_pod_after_the_back_off_while_the_one_before_is_still_going(
    world: World,
) -> None:
    annotations = {"kube-in-process/run-seconds": "1000"}
    indexed: Object = {
        "completionMode": "Indexed",
        "completions": 1,
        "backoffLimitPerIndex": 2,
    }
    never = {"restartPolicy": "Never"}
    world.workload("jobs", "work", metadata={"annotations": annotations}, pod=never, **indexed)
    await world.passes(1)
    (first,) = world.pods()
    world.cluster.pause("kubelet")
    world.api.delete("pods", "default", first["metadata"]["name"])
    await world.passes(9)
    assert len(world.pods()) == 1
    await world.passes(3)
    pods = sorted("deletionTimestamp" in pod["metadata"] for pod in world.pods())
    assert pods == [False, True]
