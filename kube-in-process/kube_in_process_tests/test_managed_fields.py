"""Managed fields of updates, and server-side apply on top of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.kinds.builtin import builtin_kinds
from kube_in_process.managed_fields import fieldset
from kube_in_process.managed_fields.apply import Applier, ApplyRequest
from kube_in_process.managed_fields.managers import FieldWrite, ManagedFields
from kube_in_process.options import Features
from kube_in_process.schema.registry import Schemas

from .servers import Answered, server

FEATURES = Features()
KINDS = builtin_kinds(FEATURES)
SCHEMAS = Schemas(lambda: FEATURES)
Object = dict[str, Any]


class Written:
    """One object, and the managers that write it one after the other."""

    def __init__(self, plural: str) -> None:
        self.kind = KINDS.named(plural)
        self.obj: Object | None = None
        self.writes = 0

    def update(self, manager: str, body: Object, subresource: str = "") -> Written:
        self.writes += 1
        new = {**(self.obj or {"metadata": {"name": "a"}}), **body}
        new["metadata"] = dict(new["metadata"])
        write = FieldWrite(
            self.kind, self.kind.version, self.obj, new, manager, subresource, f"t{self.writes}"
        )
        recorded = ManagedFields(SCHEMAS).record(write)
        assert recorded is not None
        new["metadata"]["managedFields"] = recorded
        self.obj = new
        return self

    def apply(
        self, manager: str, body: Object, subresource: str = "", force: bool = False
    ) -> Written:
        self.writes += 1
        head = {"apiVersion": self.kind.api_version(), "kind": self.kind.kind}
        patch = {**head, "metadata": {"name": "a"}, **body}
        request = ApplyRequest(
            kind=self.kind,
            version=self.kind.version,
            old=self.obj,
            patch=patch,
            manager=manager,
            force=force,
            subresource=subresource,
            time=f"t{self.writes}",
        )
        self.obj = Applier(SCHEMAS).apply(request)
        return self

    @property
    def managers(self) -> list[tuple[str, str, Object]]:
        assert self.obj is not None
        return [
            (entry["manager"], entry["operation"], entry["fieldsV1"])
            for entry in self.obj["metadata"]["managedFields"]
        ]


def reference(uid: str) -> Object:
    return {"resource": "pods", "name": f"pod-{uid}", "uid": uid}


def owned(uid: str) -> Object:
    return {f'k:{{"uid":"{uid}"}}': {".": {}, "f:name": {}, "f:resource": {}, "f:uid": {}}}


def status(*uids: str) -> Object:
    return {"status": {"reservedFor": [reference(uid) for uid in uids]}}


def test_who_wrote_which_reference_is_kept_through_the_writes_of_others() -> None:
    devices = {"requests": [{"name": "one"}]}
    claim = Written("resourceclaims").update(
        "creator", {"spec": {"devices": devices}, "status": {}}
    )
    claim.update("kube-scheduler", status("a"), "status")
    claim.update("controller", status("a", "b"), "status")
    claim.update("kcm", status("b"), "status")
    assert claim.managers == [
        ("creator", "Update", {"f:spec": {"f:devices": {"f:requests": {}}}}),
        ("kube-scheduler", "Update", {"f:status": {"f:reservedFor": {}}}),
        ("controller", "Update", {"f:status": {"f:reservedFor": owned("b")}}),
    ]


@pytest.mark.parametrize(
    ("subresource", "writers"), [("", {"forged"}), ("status", {"creator", "scheduler"})]
)
def test_an_update_of_the_object_itself_may_write_the_entries(
    subresource: str, writers: set[str]
) -> None:
    spec = {"devices": {"requests": [{"name": "d"}]}}
    claim = Written("resourceclaims").update("creator", {"spec": spec, "status": {}})
    claim.update("scheduler", status("a"), "status")
    assert claim.obj is not None
    entries = [{**entry, "manager": "forged"} for entry in claim.obj["metadata"]["managedFields"]]
    claim.update("user", {"metadata": {"name": "a", "managedFields": entries}}, subresource)
    assert {name for name, _, _ in claim.managers} == writers


def test_a_changed_field_changes_hands_and_a_removed_one_is_nobodys() -> None:
    config = Written("configmaps").update("one", {"data": {"x": "1", "y": "1"}})
    config.update("two", {"data": {"x": "2"}})
    assert config.managers == [
        ("one", "Update", {"f:data": {}}),
        ("two", "Update", {"f:data": {"f:x": {}}}),
    ]


def test_a_write_that_changes_nothing_leaves_the_entries_alone() -> None:
    config = Written("configmaps").update("one", {"data": {"x": "1"}})
    assert config.obj is not None
    before = config.obj["metadata"]["managedFields"]
    assert config.update("two", {"data": {"x": "1"}}).obj is not None
    assert config.obj["metadata"]["managedFields"] is before


def test_lists_that_are_atomic_are_owned_whole_and_structs_are_not_owned_themselves() -> None:
    spec = {"devices": {"requests": [{"name": "d"}]}}
    claim = Written("resourceclaims").update("one", {"spec": spec})
    assert claim.managers == [("one", "Update", {"f:spec": {"f:devices": {"f:requests": {}}}})]


def test_an_applied_field_that_another_changed_is_a_conflict_unless_forced() -> None:
    config = Written("configmaps").apply("one", {"data": {"x": "1", "y": "1"}})
    config.update("editor", {"data": {"x": "1", "y": "2"}})
    with pytest.raises(StatusError) as refused:
        config.apply("one", {"data": {"x": "1", "y": "1"}})
    assert refused.value.message == (
        'Apply failed with 1 conflict: conflict with "editor" using v1: .data.y'
    )
    config.apply("one", {"data": {"x": "1", "y": "1"}}, force=True)
    assert config.managers == [("one", "Apply", {"f:data": {"f:x": {}, "f:y": {}}})]


def test_conflicts_are_told_by_manager() -> None:
    config = Written("configmaps").apply("one", {"data": {"x": "1", "y": "1"}})
    config.apply("two", {"data": {"x": "1"}})
    with pytest.raises(StatusError) as refused:
        config.apply("three", {"data": {"x": "9", "y": "9"}})
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .data.x\n- .data.y\n'
        'conflicts with "two":\n- .data.x'
    )


def test_a_field_that_is_not_applied_any_more_goes_unless_another_owns_it() -> None:
    config = Written("configmaps").apply("one", {"data": {"x": "1", "y": "1"}})
    config.apply("two", {"data": {"y": "1"}}).apply("one", {"data": {"z": "1"}})
    assert config.obj is not None
    assert config.obj["data"] == {"y": "1", "z": "1"}


def test_appliers_share_a_list_by_its_keys_and_take_back_only_their_own() -> None:
    claim = Written("resourceclaims").apply("alloc", status("a"), "status")
    claim.apply("workload", status("b"), "status")
    assert claim.obj is not None
    assert claim.obj["status"] == status("a", "b")["status"]
    claim.apply("workload", status(), "status")
    assert claim.obj["status"] == status("a")["status"]
    assert claim.managers == [("alloc", "Apply", {"f:status": {"f:reservedFor": owned("a")}})]


def test_an_apply_that_changes_nothing_does_not_move_its_time() -> None:
    config = Written("configmaps").apply("one", {"data": {"x": "1"}})
    config.apply("one", {"data": {"x": "1"}}).apply("two", {"data": {"x": "1"}})
    assert config.obj is not None
    times = {e["manager"]: e.get("time") for e in config.obj["metadata"]["managedFields"]}
    assert times == {"one": "t1", "two": None}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"kind": ""}, 400, "invalid object type: /v1, Kind="),
        (
            {"metadata": {"managedFields": [{"manager": "x"}]}},
            400,
            "metadata.managedFields must be nil",
        ),
        (
            {"nosuch": 1},
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .nosuch: field not "
            "declared in schema",
        ),
    ],
)
def test_patches_that_cannot_be_applied_are_refused(body: Object, code: int, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        Written("configmaps").apply("one", body)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_paths_go_into_a_set_and_out_of_it() -> None:
    fields: Object = {}
    fieldset.insert(fields, ("f:a",))
    fieldset.insert(fields, ("f:a", "f:b"))
    fieldset.insert(fields, ("f:c", "f:d"))
    assert fields == {"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}}
    assert list(fieldset.members(fields)) == [("f:a",), ("f:a", "f:b"), ("f:c", "f:d")]
    fieldset.remove(fields, ("f:a",))
    fieldset.remove(fields, ("f:c", "f:d"))
    assert fields == {"f:a": {"f:b": {}}}
    fieldset.insert(fields, ("f:a",))
    fieldset.drop(fields, ("f:a", "f:b"))
    assert fields == {"f:a": {}}


def _entries(written: Written) -> list[tuple[str, str, bool]]:
    """Manager, subresource and whether it owns the replicas, entry by entry."""
    assert written.obj is not None
    return [
        (
            entry["manager"],
            entry.get("subresource", ""),
            fieldset.contains(entry["fieldsV1"], ("f:spec", "f:replicas")),
        )
        for entry in written.obj["metadata"]["managedFields"]
    ]


def test_replicas_that_are_set_through_scale_get_an_entry_without_a_time() -> None:
    deployment = Written("deployments").update("one", {"spec": {"replicas": 1, "paused": True}})
    deployment.update("two", {"spec": {"replicas": 4, "paused": True}}, "scale")
    assert _entries(deployment) == [("two", "scale", True), ("one", "", False)]
    assert deployment.obj is not None
    assert "time" not in deployment.obj["metadata"]["managedFields"][0]


def test_nobody_owns_replicas_that_were_scaled_to_zero() -> None:
    deployment = Written("deployments").update("one", {"spec": {"replicas": 1, "paused": True}})
    deployment.update("two", {"spec": {"replicas": 0, "paused": True}}, "scale")
    assert _entries(deployment) == [("one", "", False)]


def test_what_was_there_before_the_first_apply_has_an_owner_from_then_on() -> None:
    config = Written("configmaps")
    config.obj = {"metadata": {"name": "a"}, "data": {"x": "1"}}
    with pytest.raises(StatusError, match='conflict with "before-first-apply"'):
        config.apply("one", {"data": {"x": "2"}})
    config.apply("one", {"data": {"x": "2"}}, force=True)
    assert config.obj["data"] == {"x": "2"}


def test_an_update_of_what_nobody_is_known_to_have_written_is_not_recorded() -> None:
    kind = KINDS.named("configmaps")
    old = {"metadata": {"name": "a"}, "data": {"x": "1"}}
    new = {"metadata": {"name": "a"}, "data": {"x": "2"}}
    write = FieldWrite(kind, "v1", old, new, "one", "", "t1")
    assert ManagedFields(SCHEMAS).record(write) is None


def test_a_null_in_an_applied_configuration_takes_a_value_away_and_no_map() -> None:
    config = Written("configmaps").apply("one", {"immutable": False, "data": {"x": "1"}})
    config.apply("one", {"immutable": None, "data": None}, force=True)
    assert config.obj is not None
    assert config.obj["immutable"] is None


def test_of_an_item_that_is_there_twice_only_the_item_is_owned() -> None:
    env = [{"name": "A", "value": "b"}, {"name": "A", "value": "c"}]
    containers = [{"name": "main", "env": env}]
    pod = Written("pods").update("one", {"spec": {"containers": containers}})
    assert pod.obj is not None
    fields = pod.obj["metadata"]["managedFields"][0]["fieldsV1"]
    main = fields["f:spec"]["f:containers"]['k:{"name":"main"}']
    assert main["f:env"] == {".": {}, 'k:{"name":"A"}': {}}


CONFIGMAPS = "/api/v1/namespaces/ns/configmaps"
MERGE_PATCH = "application/merge-patch+json"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


async def test_kubectl_takes_over_by_server_side_apply_what_it_applied_itself() -> None:
    """As 1.36.2 does: no conflict with its own annotation, but one with a later change."""
    run = server()
    path = f"{CONFIGMAPS}/c"
    text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b": "1"}})
    metadata = {"name": "c", "annotations": {LAST_APPLIED: text}}
    await run.send("POST", CONFIGMAPS, {"metadata": metadata, "data": {"a": "1", "b": "1"}})
    await run.send("PATCH", path, {"data": {"b": "2"}}, {"content-type": MERGE_PATCH})
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    headers = {"content-type": "application/apply-patch+yaml"}

    async def apply(manager: str, data: dict[str, str]) -> Answered:
        query = f"{path}?fieldManager={manager}"
        return await run.send("PATCH", query, {**applied, "data": data}, headers)

    assert (await apply("stranger", {"a": "<5>"})).status == 409
    assert (await apply("kubectl", {"b": "5"})).status == 409
    taken = await apply("kubectl", {"a": "<5>"})
    assert taken.status == 200
    shown = taken.body["metadata"]["annotations"][LAST_APPLIED]
    assert shown == (
        '{"apiVersion":"v1","data":{"a":"\\u003c5\\u003e"},"kind":"ConfigMap",'
        '"metadata":{"name":"c"}}\n'
    )
