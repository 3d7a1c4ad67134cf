"""Events: one storage, in the form of core/v1, and two APIs that show it."""

from __future__ import annotations

from typing import Any

from claimctl.embedded import errors
from claimctl.embedded.errors import FieldError
from claimctl.embedded.kinds import Kind
from claimctl.embedded.options import Features
from claimctl.embedded.strategy import Context, Strategy

Object = dict[str, Any]
NEW_GROUP = "events.k8s.io"
_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
"""What events.k8s.io calls the fields of core/v1."""
_ALWAYS: Object = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_OBJECT_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


class EventStrategy(Strategy):
    """The field labels of core/v1 select in both APIs."""

    def inward(self, obj: Object, kind: Kind, version: str) -> Object:
        if kind.group == NEW_GROUP:
            return {_NAMES.get(key, key): value for key, value in obj.items()}
        return obj

    def outward(self, obj: Object, kind: Kind, version: str) -> Object:
        if kind.group == NEW_GROUP:
            back = {old: new for new, old in _NAMES.items()}
            obj = {back.get(key, key): value for key, value in obj.items()}
        return super().outward(obj, kind, version)

    def default(self, obj: Object, features: Features) -> None:
        for key, value in _ALWAYS.items():
            if obj.get(key) is None:
                obj[key] = {} if key == "source" else value
        obj.setdefault("involvedObject", {})

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        if context.kind.group == NEW_GROUP:
            return _validate_new(obj)
        if obj.get("eventTime"):
            return _validate_new(obj)
        namespace, own = obj["involvedObject"].get("namespace", ""), obj["metadata"]["namespace"]
        if namespace != own and (namespace or own != "default"):
            text = "does not match event.namespace"
            return [errors.invalid_value("involvedObject.namespace", namespace, text)]
        return []

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        return []

    def selectable_names(self) -> tuple[str, ...]:
        involved = tuple(f"involvedObject.{key}" for key in _OBJECT_FIELDS)
        return (*involved, "reason", "reportingComponent", "source", "type")

    def selectable(self, obj: Object) -> dict[str, str]:
        involved = obj.get("involvedObject") or obj.get("regarding") or {}
        found = {f"involvedObject.{key}": str(involved.get(key, "")) for key in _OBJECT_FIELDS}
        source = obj.get("source") or obj.get("deprecatedSource") or {}
        component = obj.get("reportingComponent") or obj.get("reportingController") or ""
        found["source"] = str(source.get("component") or component)
        found["reportingComponent"] = str(component)
        found["reason"], found["type"] = str(obj.get("reason", "")), str(obj.get("type", ""))
        return found


def _validate_new(event: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if not event.get("eventTime"):
        found.append(errors.required("eventTime"))
    for stored, path in (
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ):
        if not event.get(stored):
            found.append(errors.required(path))
    if event.get("type") not in ("Normal", "Warning"):
        found.append(errors.invalid_value("type", event.get("type", ""), ""))
    return found
