"""ConfigMaps and Secrets: keys, sizes, and what a type of Secret asks for."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import ClassVar

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names

_LARGEST = 1024 * 1024
"""Bytes of all values together."""


def data_keys(obj: Object, field: str) -> list[FieldError]:
    """The errors of the keys of a ConfigMap or Secret, which are file names."""
    return [
        errors.invalid_value(f"{field}[{key}]", key, text)
        for key in sorted(obj.get(field) or {})
        for text in names.config_key(key)
    ]


def immutable_data(new: Object, old: Object, fields: tuple[str, ...]) -> list[FieldError]:
    """The errors of a change of immutable data."""
    if not old.get("immutable"):
        return []
    text = "field is immutable when `immutable` is set"
    field_errors: list[FieldError] = []
    if not new.get("immutable"):
        field_errors.append(errors.forbidden_field("immutable", text))
    return [
        *field_errors,
        *(errors.forbidden_field(key, text) for key in fields if new.get(key) != old.get(key)),
    ]


class ConfigMapStrategy(Strategy):
    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        field_errors = data_keys(obj, "data")
        for key in sorted(obj.get("binaryData") or {}):
            if key in (obj.get("data") or {}):
                text = "duplicate of key present in data"
                field_errors.append(errors.invalid_value(f"binaryData[{key}]", key, text))
        field_errors += data_keys(obj, "binaryData")
        texts = (obj.get("data") or {}).values()
        size = sum(len(text.encode()) for text in texts) + _decoded_size(obj, "binaryData")
        # the server gives no field
        return [*field_errors, errors.too_long("[]", _LARGEST)] if size > _LARGEST else field_errors

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        fixed = immutable_data(new, old, ("data", "binaryData"))
        return [*fixed, *self.validate(new, context)]


class SecretStrategy(Strategy):
    """stringData is encoded into data."""

    selectable_fields: ClassVar[Mapping[str, str]] = {"type": ""}

    def default(self, obj: Object, features: Features) -> None:
        obj.setdefault("type", "Opaque")
        texts = obj.pop("stringData", None) or {}
        for key, text in texts.items():
            obj.setdefault("data", {})[key] = b64encode(text.encode()).decode()

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        field_errors = data_keys(obj, "data")
        if _decoded_size(obj, "data") > _LARGEST:
            field_errors.append(errors.too_long("data", _LARGEST))
        return [*field_errors, *_of_type(obj)]

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        field_errors: list[FieldError] = []
        if new.get("type") != old.get("type"):
            text = "field is immutable"
            field_errors.append(errors.invalid_value("type", new.get("type", ""), text))
        return [*field_errors, *immutable_data(new, old, ("data",)), *data_keys(new, "data")]


def _decoded_size(obj: Object, field: str) -> int:
    return sum(len(b64decode(value)) for value in (obj.get(field) or {}).values())


def _of_type(secret: Object) -> list[FieldError]:
    """The errors of what the type of a Secret asks for."""
    data, kind = secret.get("data") or {}, secret.get("type")
    if kind == "kubernetes.io/service-account-token":
        account = "kubernetes.io/service-account.name"
        if not (secret["metadata"].get("annotations") or {}).get(account):
            return [errors.required(f"metadata.annotations[{account}]")]
    if kind == "kubernetes.io/basic-auth" and not data.keys() & set(_BASIC):
        return [errors.required(f"data[{key}]") for key in _BASIC]
    field_errors = [
        errors.required(f"data[{key}]") for key in _KEYS.get(kind or "", ()) if key not in data
    ]
    for key in _KEYS[kind] if kind in _JSON else ():
        if key in data and (problem := _json_problem(b64decode(data[key]))):
            hidden = "<secret contents redacted>"
            field_errors.append(errors.invalid_value(f"data[{key}]", hidden, problem))
    return field_errors


_BASIC = ("username", "password")
"""One of them is enough."""
_KEYS: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_JSON = frozenset({"kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"})
"""The types whose keys have JSON."""


def _json_problem(text: bytes) -> str:
    """What Go says of a text that is no JSON; '' if it is."""
    try:
        json.loads(text)
    except ValueError:
        shown = text.decode(errors="replace").lstrip()
        if not shown:
            return "unexpected end of JSON input"
        return f"invalid character {shown[0]!r} looking for beginning of value"
    return ""
