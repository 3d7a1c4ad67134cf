"""Fields that a later release adds: every struct has one that claimctl does not know.

``add`` makes a cluster store a text in such a field of each struct that anybody but claimctl
writes. ``judge`` then looks at each write of claimctl for structs that it kept without the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube_in_process.cluster import Cluster
from kube_in_process.schema.tree import Schema
from kube_in_process.storage.store import Address, Author

from tests.e2e.site import CONTROLLER_USER

FIELD = "addedLater"
KEYS = ("uid", "key", "type", "name", "device")
"""What tells an entry of a list from the others."""
KINDS = (
    "daemonsets",
    "deployments",
    "jobs",
    "leases",
    "nodes",
    "podgroups",
    "pods",
    "replicasets",
    "resourceclaims",
    "resourceclaimtemplates",
    "statefulsets",
)
STATUSES = ("podgroups", "resourceclaims")
"""Kinds whose status claimctl writes. The components compare the statuses of the others."""


def add(cluster: Cluster) -> None:
    """Begin to add the field. The cluster's ``added_field`` has to be ``FIELD``."""
    put = cluster.store.put

    def put_with_field(address: Address, obj: dict[str, Any], author: Author) -> dict[str, Any]:
        kind = cluster.api.kinds.by_plural(address.group, address.plural)
        if kind is None or address.plural not in KINDS or author.user == CONTROLLER_USER:
            return put(address, obj, author)
        schema = cluster.api.schemas.find(kind.group, kind.version, kind.kind)
        assert schema is not None
        for part in ("spec", "status"):
            below = schema.field(part)
            if below is not None and (part == "spec" or address.plural in STATUSES):
                _mark(below, obj.get(part))
        return put(address, obj, author)

    cluster.store.put = put_with_field  # type: ignore[method-assign]  # for this cluster alone


def _mark(schema: Schema, value: Any) -> None:
    if isinstance(value, list) and schema.items is not None:
        for each in value:
            _mark(schema.items, each)
    elif isinstance(value, dict):
        for name, each in value.items():
            below = schema.field(name)
            if below is not None:
                _mark(below, each)
        if schema.type == "object" and schema.field(FIELD) is not None:
            value[FIELD] = "kept"


def judge(cluster: Cluster) -> None:
    """Fail if a write of claimctl kept a struct without the field, or if it kept none with it."""
    writes = [
        each
        for each in cluster.history()
        if (each.actor, each.type) == (CONTROLLER_USER, "MODIFIED") and each.plural in KINDS
    ]
    assert any(f'"{FIELD}"'.encode() in each.data for each in writes)
    lost = [
        f"{each.verb} {each.plural}/{each.name} {each.subresource}: {path}"
        for each in writes
        for path in _lost(each.previous_object(), each.object(), "")
    ]
    assert not lost, lost


def _lost(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, list) and isinstance(after, list):
        there = {_identity(each): each for each in after}
        for each in before:
            yield from _lost(each, there.get(_identity(each)), f"{path}[{_identity(each)}]")
    elif isinstance(before, dict) and isinstance(after, dict):
        if FIELD in before and FIELD not in after:
            yield path
        for name, each in before.items():
            yield from _lost(each, after.get(name), f"{path}.{name}")


def _identity(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    return "/".join(str(entry.get(key, "")) for key in KEYS)
