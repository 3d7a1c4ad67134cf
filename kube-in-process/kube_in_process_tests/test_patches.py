from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.patch.json_patch import PatchError, json_patch, merge
from kube_in_process.patch.strategic import strategic_merge

Object = dict[str, Any]


def test_a_merge_patch_removes_nulls_and_replaces_lists() -> None:
    target = {"a": {"b": 1, "c": 2}, "l": [1, 2]}
    assert merge(target, {"a": {"b": None, "d": 3}, "l": [3]}) == {"a": {"c": 2, "d": 3}, "l": [3]}
    assert target == {"a": {"b": 1, "c": 2}, "l": [1, 2]}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/l/-", "value": 3}, {"l": [1, 2, 3], "m": {"a/b": 1}}),
        ({"op": "add", "path": "/l/0", "value": 0}, {"l": [0, 1, 2], "m": {"a/b": 1}}),
        ({"op": "replace", "path": "/l/1", "value": 9}, {"l": [1, 9], "m": {"a/b": 1}}),
        ({"op": "remove", "path": "/m/a~1b"}, {"l": [1, 2], "m": {}}),
        ({"op": "move", "from": "/l/0", "path": "/x"}, {"l": [2], "m": {"a/b": 1}, "x": 1}),
        ({"op": "copy", "from": "/l", "path": "/x"}, {"l": [1, 2], "m": {"a/b": 1}, "x": [1, 2]}),
        ({"op": "test", "path": "/l/0", "value": 1}, {"l": [1, 2], "m": {"a/b": 1}}),
        ({"op": "test", "path": "/x"}, {"l": [1, 2], "m": {"a/b": 1}}),
        ({"op": "replace", "path": "/x", "value": 1}, {"l": [1, 2], "m": {"a/b": 1}, "x": 1}),
        ({"op": "copy", "from": "/y", "path": "/x"}, {"l": [1, 2], "m": {"a/b": 1}, "x": None}),
        ({"op": "remove", "path": "/l/-1"}, {"l": [1], "m": {"a/b": 1}}),
        ({"op": "replace", "path": "", "value": {"x": 1}}, {"x": 1}),
    ],
)
def test_a_json_patch_operation(operation: Object, expected: Object) -> None:
    assert json_patch({"l": [1, 2], "m": {"a/b": 1}}, [operation]) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "remove", "path": "/b"},
        {"op": "replace", "path": "/b/c", "value": 1},
        {"op": "move", "from": "/b", "path": "/c"},
        {"op": "add", "path": "", "value": {}},
        {"op": "test", "path": "/a", "value": True},
        {"op": "test", "path": "/a"},
        {"op": "add", "path": "/a/b/c", "value": 1},
        {"op": "frob", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
    ],
)
def test_a_json_patch_that_cannot_be_carried_out(operation: Object) -> None:
    with pytest.raises(PatchError):
        json_patch({"a": 1}, [operation])


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (
            {"op": "replace", "path": "/l/7", "value": 1},
            "replace operation does not apply: doc is missing key: /l/7: missing value",
        ),
        (
            {"op": "replace", "path": "/l/7/x", "value": 1},
            "replace operation does not apply: doc is missing path: /l/7/x: missing value",
        ),
        (
            {"op": "add", "path": "/l/9", "value": 1},
            "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index "
            "referenced",
        ),
        (
            {"op": "add", "path": "/l/x", "value": 1},
            "error in add for path: '/l/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            {"op": "add", "path": "", "value": 1},
            'add operation does not apply: doc is missing path: "": missing value',
        ),
        (
            {"op": "remove", "path": "/b"},
            "error in remove for path: '/b': Unable to remove nonexistent key: b: missing value",
        ),
        ({"op": "frob", "path": "/b"}, "Unexpected kind: frob"),
    ],
)
def test_a_json_patch_fails_in_the_words_of_the_servers_library(
    operation: Object, words: str
) -> None:
    with pytest.raises(PatchError) as failed:
        json_patch({"l": [1]}, [operation])
    assert str(failed.value) == words


def _references(*uids: str) -> list[Object]:
    return [{"uid": uid, "name": uid} for uid in uids]


def test_an_entry_that_a_patch_leaves_alone_stays_before_the_one_that_followed_it() -> None:
    target = {"reservedFor": _references("a", "b")}
    patch = {"reservedFor": [{"uid": "c", "name": "c"}, {"uid": "b", "name": "changed"}]}
    assert strategic_merge(target, patch) == {
        "reservedFor": [
            {"uid": "c", "name": "c"},
            {"uid": "a", "name": "a"},
            {"uid": "b", "name": "changed"},
        ]
    }


def test_an_entry_is_deleted_by_its_key() -> None:
    target = {"reservedFor": _references("a", "b")}
    patch = {"reservedFor": [{"$patch": "delete", "uid": "a"}, {"$patch": "delete", "uid": "z"}]}
    assert strategic_merge(target, patch) == {"reservedFor": _references("b")}


def test_a_keyed_list_can_be_replaced_whole() -> None:
    target = {"reservedFor": _references("a", "b")}
    patch = {"reservedFor": [{"$patch": "replace"}, *_references("c")]}
    assert strategic_merge(target, patch) == {"reservedFor": _references("c")}


def test_element_order_is_set_by_its_directive() -> None:
    target = {"conditions": [{"type": "A"}, {"type": "B"}]}
    patch = {
        "$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}],
        "conditions": [{"type": "B", "status": "True"}],
    }
    assert strategic_merge(target, patch) == {
        "conditions": [{"type": "B", "status": "True"}, {"type": "A"}]
    }


def test_finalizers_are_a_set_from_which_single_ones_are_deleted() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}
    added = strategic_merge(target, {"metadata": {"finalizers": ["c"]}})
    assert added == {"metadata": {"finalizers": ["c", "a", "b"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic_merge(added, patch) == {"metadata": {"finalizers": ["c", "b"]}}


def test_containers_merge_by_name_and_their_ports_by_number() -> None:
    target = {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 80}]}]}
    patch = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "name": "http"}]}]}
    assert strategic_merge(target, patch) == {
        "containers": [
            {"name": "c", "image": "x", "ports": [{"containerPort": 80, "name": "http"}]}
        ]
    }


def test_retained_keys_drop_all_others() -> None:
    target = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert strategic_merge(target, patch) == {"strategy": {"type": "Recreate"}}


def test_an_entry_without_its_key_is_refused() -> None:
    with pytest.raises(PatchError):
        strategic_merge({"containers": []}, {"containers": [{"image": "x"}]})
