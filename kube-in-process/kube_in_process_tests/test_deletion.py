from __future__ import annotations

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.runtime.local import ApiFor
from kube_in_process.storage.requests import DeleteOptions
from kube_in_process.virtual import run

from kube_in_process_tests.servers import config_map, pod, server


def _types(me: ApiFor, name: str) -> list[str]:
    return [revision.type for revision in me.api.store.history() if revision.name == name]


def _bound(me: ApiFor, name: str = "p", **spec: object) -> None:
    me.create("pods", pod(name, **spec), "ns")
    me.bind("ns", name, "node-0")


def test_a_bound_pod_waits_for_its_grace_period() -> None:
    me = server().local()
    _bound(me, terminationGracePeriodSeconds=30)
    marked = me.delete("pods", "ns", "p")
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    me.delete("pods", "ns", "p", DeleteOptions(grace_period_seconds=0))
    assert _types(me, "p") == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]


def test_a_second_delete_does_not_lengthen_the_grace_period() -> None:
    me = server().local()
    _bound(me, terminationGracePeriodSeconds=30)
    me.delete("pods", "ns", "p", DeleteOptions(grace_period_seconds=5))
    again = me.delete("pods", "ns", "p", DeleteOptions(grace_period_seconds=60))
    assert again["metadata"]["deletionGracePeriodSeconds"] == 5


def test_the_last_finalizer_of_a_pod_that_has_grace_left_does_not_remove_it() -> None:
    me = server().local()
    body = pod(terminationGracePeriodSeconds=30)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    me.create("pods", body, "ns")
    me.bind("ns", "p", "node-0")
    me.delete("pods", "ns", "p")
    me.patch("pods", "ns", "p", {"metadata": {"finalizers": None}})
    assert me.find("pods", "ns", "p") is not None
    me.delete("pods", "ns", "p", DeleteOptions(grace_period_seconds=0))
    assert me.find("pods", "ns", "p") is None


def test_a_second_delete_without_a_policy_keeps_that_of_the_first() -> None:
    """Without one, deletions of Jobs orphan their pods."""
    me = server().local()
    template = {"spec": {"containers": [{"name": "m", "image": "x"}], "restartPolicy": "Never"}}
    me.create("jobs", {"metadata": {"name": "a"}, "spec": {"template": template}}, "ns")
    first = me.delete("jobs", "ns", "a", DeleteOptions(propagation="Foreground"))
    second = me.delete("jobs", "ns", "a")
    assert second["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("propagation", "finalizers"),
    [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"])],
)
def test_propagation_becomes_a_finalizer(propagation: str, finalizers: list[str]) -> None:
    me = server().local()
    me.create("configmaps", config_map("a"), "ns")
    marked = me.delete("configmaps", "ns", "a", DeleteOptions(propagation=propagation))
    assert marked["metadata"]["finalizers"] == finalizers
    assert me.find("configmaps", "ns", "a") is not None


def test_preconditions_are_held() -> None:
    me = server().local()
    created = me.create("configmaps", config_map("a"), "ns")
    version = created["metadata"]["resourceVersion"]
    for options in (DeleteOptions(uid="other"), DeleteOptions(resource_version="1")):
        with pytest.raises(StatusError) as refused:
            me.delete("configmaps", "ns", "a", options)
        assert refused.value.code == 409
    me.delete("configmaps", "ns", "a", DeleteOptions(resource_version=version))
    assert me.find("configmaps", "ns", "a") is None


def test_a_write_that_changes_nothing_makes_no_revision() -> None:
    served = server()
    me = served.local()
    created = me.create("configmaps", config_map("a", k="v"), "ns")
    same = me.update("configmaps", created)
    assert same["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    assert _types(me, "a") == ["ADDED"]


def test_a_stale_update_conflicts_and_changes_nothing() -> None:
    me = server().local()
    stale = me.create("configmaps", config_map("a", k="v"), "ns")
    me.patch("configmaps", "ns", "a", {"data": {"k": "w"}})
    with pytest.raises(StatusError, match="the object has been modified"):
        me.update("configmaps", {**stale, "data": {"k": "x"}})
    assert me.get("configmaps", "ns", "a")["data"] == {"k": "w"}


def test_what_a_component_hands_in_is_not_changed_and_not_kept() -> None:
    me = server().local()
    body = config_map("a", k="v")
    me.create("configmaps", body, "ns")
    assert body == config_map("a", k="v")
    body["data"]["k"] = "w"
    assert me.get("configmaps", "ns", "a")["data"] == {"k": "v"}


def test_events_show_in_both_apis() -> None:
    served = server()
    event = {
        "metadata": {"name": "e", "namespace": "ns"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "ns"},
        "reason": "R",
        "note": "text",
        "type": "Normal",
        "action": "A",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "c",
        "reportingInstance": "i",
    }
    path = "/apis/events.k8s.io/v1/namespaces/ns/events"
    assert run(served.send("POST", path, event)).status == 201
    listed = run(served.send("GET", "/api/v1/events?fieldSelector=involvedObject.name%3Dp")).body
    (shown,) = listed["items"]
    assert (shown["message"], shown["involvedObject"]["name"]) == ("text", "p")
    assert shown["reportingComponent"] == "c"
    again = run(served.send("GET", f"{path}/e")).body
    assert {key: again[key] for key in event if key != "metadata"} == {
        key: event[key] for key in event if key != "metadata"
    }


def test_a_job_deleted_without_options_orphans_its_pods_and_says_so() -> None:
    served = server()
    path = "/apis/batch/v1/namespaces/ns/jobs"
    spec = {"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}}
    run(served.send("POST", path, {"metadata": {"name": "j"}, "spec": spec}))
    answer = run(served.send("DELETE", f"{path}/j"))
    assert answer.body["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default" in answer.headers["warning"]


def test_the_finalize_subresource_of_a_namespace_owns_no_status() -> None:
    """As seen on 1.32, 1.34 and 1.36: a status that is not stored makes no version and no owner."""
    served = server()
    path = "/api/v1/namespaces"
    created = run(served.send("POST", path, {"metadata": {"name": "space"}})).body
    body = {**created, "status": {"phase": "Terminating"}}
    answer = run(served.send("PUT", f"{path}/space/finalize", body))
    assert answer.status == 200
    assert answer.body == created
