"""Defaults, validation and selectors for objects of custom kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from kube_in_process.crd.rules import Rules
from kube_in_process.crd.structural import drop_nulls, fill_defaults, type_name, validate
from kube_in_process.errors import FieldError, Subject, forbidden, invalid_text, invalid_value
from kube_in_process.kinds.strategy import ScalePaths, Strategy, WriteContext
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import jsonpath

_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
"""Errors that prevent the evaluation of rules."""
_NOT_CHECKED = invalid_text(
    "<nil>",
    "null",
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)


class CustomStrategy(Strategy):
    """Defaults, validation and rules from the schema of the definition's stored version."""

    def __init__(self, definition: Object, version: Object) -> None:
        self.raw: Object = version["schema"]["openAPIV3Schema"]
        spec = definition["spec"]
        self._names = {
            "kind": spec["names"]["kind"],
            "apiVersion": f"{spec['group']}/{version['name']}",
        }
        self.rules = Rules(self.raw)
        self.terminating = bool(definition["metadata"].get("deletionTimestamp"))
        self._fields = tuple(
            entry["jsonPath"].removeprefix(".") for entry in version.get("selectableFields") or ()
        )
        self.scale = scale_paths(version)

    def decoded(self, obj: Object) -> None:
        drop_nulls(self.raw, obj)

    def default(self, obj: Object, features: Features) -> None:
        if not self._misnamed(obj):
            fill_defaults(self.raw, obj)

    def _keep_all_but_status(self, new: Object, old: Object) -> None:
        kept = {"managedFields": new["metadata"].get("managedFields")}
        super()._keep_all_but_status(new, old)
        meta = {**old["metadata"], **kept}
        new["metadata"] = {key: value for key, value in meta.items() if value is not None}
        # the status of an object that named another kind got no defaults before
        fill_defaults(self.raw, new)

    standard_finalizers = False
    revalidates = False
    warns_of_finalizers = True

    def _misnamed(self, obj: Object) -> list[FieldError]:
        """The errors of an object that names another kind or version.

        The server checks nothing else of such an object, except the rules.
        """
        return [
            invalid_value(key, obj[key], f"must be {wanted}")
            for key, wanted in self._names.items()
            if obj[key] != wanted
        ]

    def admit(self, obj: Object, context: WriteContext) -> None:
        if self.terminating:
            text = "create not allowed while custom resource definition is terminating"
            kind = context.kind
            raise forbidden(Subject(kind.group, kind.plural, obj["metadata"]["name"]), text)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        misnamed = self._misnamed(obj)
        if misnamed:
            field_errors = [*misnamed, *self.rules.check(obj, None)]
        else:
            field_errors = self._all(obj, None, validate(self.raw, obj))
        return _with_types(field_errors, obj, context.features)

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Errors that the old object had, too, are ignored (ratcheting)."""
        if misnamed := self._misnamed(new):
            return _with_types([*misnamed, *self.rules.check(new, old)], new, context.features)
        if context.subresource == "status":
            field_errors, before = self._status(new), self._status(old)
        else:
            field_errors, before = validate(self.raw, new), validate(self.raw, old)
        field_errors = self._all(new, old, [error for error in field_errors if error not in before])
        return _with_types(field_errors, new, context.features)

    def _status(self, obj: Object) -> list[FieldError]:
        """Errors of the status alone, for writes through /status."""
        raw = self.raw.get("properties", {}).get("status", {})
        return [
            FieldError(error.reason, f"status.{error.path}".rstrip("."), error.message)
            for error in validate(raw, obj.get("status"))
        ]

    def _all(
        self, obj: Object, old: Object | None, field_errors: list[FieldError]
    ) -> list[FieldError]:
        field_errors = [*field_errors, *self._scale_errors(obj)]
        unnamed = not obj["metadata"].get("name")
        if unnamed or any(error.reason in _BLOCKING for error in field_errors):
            return [*field_errors, _NOT_CHECKED] if self.rules.any else field_errors
        return [*field_errors, *self.rules.check(obj, old)]

    def _scale_errors(self, obj: Object) -> list[FieldError]:
        if self.scale is None:
            return []
        checked = (_replicas_error(path, obj) for path in (self.scale.spec, self.scale.status))
        return [error for error in checked if error is not None]

    def selectable_names(self) -> tuple[str, ...]:
        return self._fields

    def selectable(self, obj: Object) -> Mapping[str, str]:
        return {name: _first_text(name, obj) for name in self._fields}


_PLAIN = re.compile(r'Invalid value: (?=[^"\[{\d-])(?!null|true|false)')


def _with_types(
    field_errors: list[FieldError], obj: Object, features: Features
) -> list[FieldError]:
    """Add the value's type to messages of rules; from 1.35 on the value, if it is a scalar."""
    typed = []
    for error in field_errors:
        value = _at(obj, error.path)
        shown = f'"{type_name(value)}"'
        if features.version >= (1, 35):
            shown = "" if isinstance(value, (dict, list)) else json.dumps(value)
        prefix = f"Invalid value: {shown}: " if shown else "Invalid value: "
        text = _PLAIN.sub(prefix.replace("\\", "\\\\"), error.message)
        typed.append(FieldError(error.reason, error.path, text))
    return typed


def _at(obj: Object, path: str) -> Any:
    """The value at a field path; the object itself if there is none."""
    value: Any = obj
    for part in re.findall(r"[^.\[\]]+", path) if path != "<nil>" else ():
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return obj
    return value


def scale_paths(version: Object) -> ScalePaths | None:
    """The scale subresource of a definition's version, if it has one."""
    scale = (version.get("subresources") or {}).get("scale")
    if not scale:
        return None
    return ScalePaths(
        scale["specReplicasPath"],
        scale["statusReplicasPath"],
        scale.get("labelSelectorPath", ""),
    )


def _replicas_error(path: str, obj: Object) -> FieldError | None:
    values = jsonpath.find(path, obj)
    if not values or values[0] is None:
        return None
    value = values[0]
    if not isinstance(value, int) or isinstance(value, bool):
        text = f"{path} accessor error: {value} is of the type {type_name(value)}, expected int64"
        return invalid_value(path, 0, text)
    return invalid_value(path, value, "should be a non-negative integer") if value < 0 else None


def _first_text(name: str, obj: Object) -> str:
    values = jsonpath.find(f".{name}", obj)
    if not values:
        return ""
    value = values[0]
    return str(value).lower() if isinstance(value, bool) else str(value)
