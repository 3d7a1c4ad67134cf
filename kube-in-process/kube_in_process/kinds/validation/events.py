"""Events: stored in the form of core/v1, and served by two APIs."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.kind import Kind
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names

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
"""The fields of events.k8s.io by their names in core/v1."""
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
    """Field selectors use the names of core/v1 in both APIs.

    The strategy of core/v1 events does not check metadata; only the rules for all kinds do. No
    object depends on an event, so a deletion adds no finalizer.
    """

    name_check = staticmethod(names.path_segment)
    revalidates = False
    collects_garbage = False

    def __init__(self, *, old_api: bool) -> None:
        self.validates_metadata = self.standard_finalizers = not old_api
        if not old_api:
            self.name_check = names.subdomain

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

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        old_api = context.kind.group != NEW_GROUP
        field_errors = _always(obj, old_api=old_api)
        return field_errors if old_api else [*field_errors, *_series(obj), *_strict(obj)]

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        old_api = context.kind.group != NEW_GROUP
        field_errors = _always(new, old_api=old_api)
        if old_api:
            return field_errors
        if new.get("series") != old.get("series"):
            field_errors += _series(new)
        return [*field_errors, *_unchanged(new, old)]

    def selectable_names(self) -> tuple[str, ...]:
        involved = tuple(f"involvedObject.{key}" for key in _OBJECT_FIELDS)
        regarding = tuple(f"regarding.{key}" for key in _OBJECT_FIELDS)
        names = ("reason", "reportingComponent", "reportingController", "source", "type")
        return (*involved, *regarding, *names)

    def selectable(self, obj: Object) -> dict[str, str]:
        involved = obj.get("involvedObject") or obj.get("regarding") or {}
        selectable_fields = {
            f"involvedObject.{key}": str(involved.get(key, "")) for key in _OBJECT_FIELDS
        }
        selectable_fields |= {
            f"regarding.{key}": str(involved.get(key, "")) for key in _OBJECT_FIELDS
        }
        source = obj.get("source") or obj.get("deprecatedSource") or {}
        component = obj.get("reportingComponent") or obj.get("reportingController") or ""
        selectable_fields["source"] = str(source.get("component") or component)
        selectable_fields["reportingComponent"] = selectable_fields["reportingController"] = str(
            component
        )
        selectable_fields["reason"], selectable_fields["type"] = (
            str(obj.get("reason", "")),
            str(obj.get("type", "")),
        )
        return selectable_fields


_LONGEST = 128
_LONGEST_NOTE = 1024


def _always(event: Object, *, old_api: bool) -> list[FieldError]:
    """The errors in both APIs. An event with an eventTime needs more fields."""
    path = "involvedObject.namespace"
    own, involved = event["metadata"]["namespace"], event["involvedObject"].get("namespace") or ""
    if not event.get("eventTime"):
        fits = involved == own or (not involved and own == "default")
    else:
        fits = bool(involved) or own in ("default", "kube-system")
    field_errors = (
        [] if fits else [errors.invalid_value(path, involved, "does not match event.namespace")]
    )
    if not event.get("eventTime"):
        return field_errors
    controller = "reportingComponent" if old_api else "reportingController"
    named = event.get("reportingComponent") or ""
    if not named:
        field_errors.append(errors.required(controller))
    field_errors += errors.invalid_name(controller, named, names.qualified_name)
    for key in ("reportingInstance", "action", "reason"):
        field_errors += _text(event.get(key) or "", key)
    if len((event.get("message") or "").encode()) > _LONGEST_NOTE:
        text = f"can have at most {_LONGEST_NOTE} bytes"
        field_errors.append(errors.invalid_value("message", "", text))
    return field_errors


def _text(value: str, path: str) -> list[FieldError]:
    if not value:
        return [errors.required(path)]
    if len(value.encode()) > _LONGEST:
        return [errors.invalid_value(path, "", f"can have at most {_LONGEST} characters")]
    return []


def _series(event: Object) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    field_errors = []
    if (series.get("count") or 0) < 2:
        field_errors.append(errors.invalid_value("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        field_errors.append(errors.required("series.lastObservedTime"))
    return field_errors


def _strict(event: Object) -> list[FieldError]:
    """Further errors of a new event of events.k8s.io."""
    field_errors = [] if event.get("eventTime") else [errors.required("eventTime")]
    kind = event.get("type") or ""
    if kind not in ("Normal", "Warning"):
        field_errors.append(errors.invalid_value("type", "", f"has invalid value: {kind}"))
    for key in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(key):
            field_errors.append(errors.invalid_value(key, "", "needs to be unset"))
    return field_errors


_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingController",
    "reportingInstance",
)


def _unchanged(new: Object, old: Object) -> list[FieldError]:
    """Through events.k8s.io, only the series of an event may change."""
    field_errors = []
    for path in _FIXED:
        key = _NAMES.get(path, path)
        if (new.get(key) or None) != (old.get(key) or None):
            value = new.get(key)
            shown = value if value or key in _ALWAYS or key == "involvedObject" else ""
            if key == "eventTime":
                shown = value or None
            field_errors.append(errors.invalid_value(path, shown, "field is immutable"))
    return field_errors
