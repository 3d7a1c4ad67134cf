from __future__ import annotations

import pytest
from kube_in_process.storage.store import Address, Author, Compacted, Store, decode

ME = Author("me", "update")


def _address(name: str, namespace: str = "ns") -> Address:
    return Address("", "pods", namespace, name)


def _put(store: Store, name: str, value: int, namespace: str = "ns") -> None:
    store.put(_address(name, namespace), {"metadata": {"name": name}, "value": value}, ME)


@pytest.fixture
def store() -> Store:
    return Store(lambda: 0.0)


def test_what_was_read_can_be_changed_without_changing_the_store(store: Store) -> None:
    _put(store, "a", 1)
    read = store.get(_address("a"))
    assert read is not None
    read["value"] = 99
    assert store.get(_address("a")) == {
        "metadata": {"name": "a", "resourceVersion": "2"},
        "value": 1,
    }


def test_lists_come_in_the_order_of_their_keys_and_by_namespace(store: Store) -> None:
    for name, namespace in (("b", "ns"), ("a", "ns"), ("z", "n"), ("a", "ns0")):
        _put(store, name, 0, namespace)
    assert store.items("", "pods").keys == ["n/z", "ns/a", "ns/b", "ns0/a"]
    assert store.items("", "pods", "ns").keys == ["ns/a", "ns/b"]


def test_a_state_of_the_past_can_be_listed_until_it_is_compacted(store: Store) -> None:
    _put(store, "a", 1)
    _put(store, "b", 1)
    then = store.revision
    _put(store, "a", 2)
    store.delete(_address("b"), ME)
    _put(store, "c", 1)
    _put(store, "b", 3)
    store.delete(_address("b"), ME)
    past = store.items_at("", "pods", "ns", then)
    assert past.keys == ["ns/a", "ns/b"]
    assert [decode(obj)["value"] for obj in past] == [1, 1]
    assert store.items("", "pods", "ns").keys == ["ns/a", "ns/c"]
    store.compact()
    with pytest.raises(Compacted):
        store.items_at("", "pods", "ns", then)


def test_the_history_answers_what_was_ever_true_after_compaction_too(store: Store) -> None:
    _put(store, "a", 1)
    _put(store, "a", 2)
    store.delete(_address("a"), ME)
    store.compact()
    assert [(revision.number, revision.type) for revision in store.history()] == [
        (2, "ADDED"),
        (3, "MODIFIED"),
        (4, "DELETED"),
    ]
    assert [revision.number for revision in store.history(since=3)] == [4]
    values = [(store.object_at(_address("a"), number) or {}).get("value") for number in range(1, 5)]
    assert values == [None, 1, 2, None]


def test_a_deletion_carries_the_last_state_under_a_version_of_its_own(store: Store) -> None:
    _put(store, "a", 1)
    store.delete(_address("a"), ME)
    *_, last = store.history()
    assert last.object() == {"metadata": {"name": "a", "resourceVersion": "3"}, "value": 1}
    assert last.previous_object() == {"metadata": {"name": "a", "resourceVersion": "2"}, "value": 1}


def test_a_server_that_begins_anew_lists_the_past_and_watches_from_now_on(store: Store) -> None:
    _put(store, "a", 1)
    then = store.revision
    _put(store, "a", 2)
    store.begin()
    assert [decode(obj)["value"] for obj in store.items_at("", "pods", "ns", then)] == [1]
    assert list(store.since("", "pods", store.revision)) == []
    with pytest.raises(Compacted):
        store.since("", "pods", then)


def test_a_restored_store_has_the_objects_and_the_versions_of_the_backup(store: Store) -> None:
    for name in ("changed", "deleted", "left"):
        _put(store, name, 1)
    backup = store.revision
    before = list(store.items("", "pods"))
    _put(store, "changed", 2)
    store.delete(_address("deleted"), ME)
    _put(store, "made", 1)
    _put(store, "passing", 1)
    store.delete(_address("passing"), ME)
    lost = store.revision
    store.restore(backup)
    assert list(store.items("", "pods")) == before
    assert list(store.items_at("", "pods", "", backup)) == before
    undone = {
        (revision.type, revision.name, revision.actor) for revision in store.history(since=lost)
    }
    assert undone == {
        ("MODIFIED", "changed", "etcd"),
        ("ADDED", "deleted", "etcd"),
        ("DELETED", "made", "etcd"),
    }
    with pytest.raises(Compacted):
        store.since("", "pods", lost)


def test_a_bounded_history_drops_the_oldest_and_refuses_to_serve_them() -> None:
    store = Store(lambda: 0.0, limit=2)
    for value in range(4):
        _put(store, "a", value)
    assert [revision.number for revision in store.history()] == [4, 5]
    assert [pod.number for pod in store.since("", "pods", 3)] == [4, 5]
    with pytest.raises(Compacted):
        store.since("", "pods", 2)
    with pytest.raises(Compacted):
        store.object_at(_address("a"), 2)


def test_subscribers_hear_of_their_kind_until_they_stop(store: Store) -> None:
    heard: list[int] = []
    stop = store.subscribe(lambda revision: heard.append(revision.number), "", "pods")
    _put(store, "a", 1)
    store.put(Address("", "nodes", "", "n"), {"metadata": {"name": "n"}}, ME)
    stop()
    _put(store, "a", 2)
    assert heard == [2]
