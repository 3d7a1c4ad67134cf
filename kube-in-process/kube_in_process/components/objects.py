"""Read and change Kubernetes objects as plain dicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from kube_in_process.errors import StatusError
from kube_in_process.objects import Object

HASH_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names (k8s.io/apimachinery/pkg/util/rand)."""


def name(obj: Object) -> str:
    value: str = obj["metadata"]["name"]
    return value


def namespace(obj: Object) -> str:
    value: str = obj["metadata"].get("namespace", "")
    return value


def uid(obj: Object) -> str:
    value: str = obj["metadata"]["uid"]
    return value


def key_of(obj: Object) -> tuple[str, str]:
    return namespace(obj), name(obj)


def deleting(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def finalizers(obj: Object) -> list[str]:
    return list(obj["metadata"].get("finalizers") or ())


def labels(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}


def owners(obj: Object) -> list[Object]:
    return list(obj["metadata"].get("ownerReferences") or ())


def controller_of(obj: Object) -> Object | None:
    """The owner reference that is marked as the controller."""
    return next((owner for owner in owners(obj) if owner.get("controller")), None)


def controller_uid(obj: Object) -> tuple[str, ...]:
    """Index values: the UID of the controller."""
    owner = controller_of(obj)
    return () if owner is None else (owner["uid"],)


def controller_reference(obj: Object) -> Object:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": name(obj),
        "uid": uid(obj),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def with_owner(obj: Object, owner: Object) -> Object:
    """The patch that makes ``owner`` the controller of an object."""
    references = [*owners(obj), controller_reference(owner)]
    return {"metadata": {"uid": uid(obj), "ownerReferences": references}}


def without_owner(obj: Object, owner_uid: str) -> Object:
    """The patch that removes an owner from an object."""
    kept = [owner for owner in owners(obj) if owner["uid"] != owner_uid]
    return {"metadata": {"uid": uid(obj), "ownerReferences": kept or None}}


def with_metadata(obj: Object, **parts: Any) -> Object:
    """A copy with changed metadata; a part that is None is removed."""
    metadata = {**obj["metadata"], **parts}
    return {**obj, "metadata": {key: part for key, part in metadata.items() if part is not None}}


def made_condition(kind: str, status: str, reason: str, message: str, now: str) -> Object:
    """A condition whose status changed ``now``."""
    shown = {"type": kind, "status": status, "reason": reason, "message": message}
    return {**shown, "lastTransitionTime": now}


def condition(obj: Object, kind: str) -> Object | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    for entry in conditions:
        if entry["type"] == kind:
            met: Object = entry
            return met
    return None


def is_true(obj: Object, kind: str) -> bool:
    entry = condition(obj, kind)
    return entry is not None and entry["status"] == "True"


def same_but_status(old: Object | None, new: Object | None) -> bool:
    """Whether only fields changed that controllers write themselves."""
    if old is None or new is None or old.get("spec") != new.get("spec"):
        return False
    ignored = ("resourceVersion", "managedFields")
    before, after = (
        {key: value for key, value in side["metadata"].items() if key not in ignored}
        for side in (old, new)
    )
    return before == after


def matches(selector: Mapping[str, Any] | None, present: Mapping[str, str]) -> bool:
    """Whether a metav1.LabelSelector matches; None matches nothing, an empty one everything."""
    if selector is None:
        return False
    if not (selector.get("matchLabels") or {}).items() <= present.items():
        return False
    return all(meets(expression, present) for expression in selector.get("matchExpressions") or ())


def meets(requirement: Mapping[str, Any], present: Mapping[str, str]) -> bool:
    """Whether labels meet one requirement of a label or node selector."""
    value = present.get(requirement["key"])
    values: list[str] = requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    return False


def short_hash(value: Any) -> str:
    """A name-safe hash of anything that is JSON (32 bits of FNV-1a)."""
    state = 0x811C9DC5
    for byte in json.dumps(value, sort_keys=True, separators=(",", ":")).encode():
        state = ((state ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(HASH_ALPHABET[ord(digit) % len(HASH_ALPHABET)] for digit in str(state))


def seconds_between(then: str, now: str) -> float:
    """Seconds between two timestamps of the API."""
    return (datetime.fromisoformat(now) - datetime.fromisoformat(then)).total_seconds()


def refused_at_the_end(error: StatusError) -> bool:
    """Whether a create was refused because the namespace is being deleted."""
    causes = (error.details or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def scaled(value: int | str | None, total: int, *, up: bool) -> int:
    """An IntOrString as a number: a percentage of ``total`` is rounded up or down."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.rstrip("%"))
    return (percent * total + 99) // 100 if up else percent * total // 100


def without(items: Iterable[str], unwanted: str) -> list[str]:
    return [item for item in items if item != unwanted]
