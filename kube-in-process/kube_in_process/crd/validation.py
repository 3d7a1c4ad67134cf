"""Validation of CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from kube_in_process.crd.rule_errors import rule_errors
from kube_in_process.errors import (
    FieldError,
    forbidden_field,
    invalid_name,
    invalid_text,
    invalid_value,
    not_supported,
    required,
)
from kube_in_process.objects import Object
from kube_in_process.storage.store import decode_any, encode
from kube_in_process.text.names import label_1035

Raw = Mapping[str, Any]
_TYPES = ("array", "boolean", "integer", "number", "object", "string")


def validate_definition(obj: Object) -> Iterator[FieldError]:
    """Yield every error of a new or changed definition, except those of its metadata."""
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    name = obj["metadata"].get("name", "")
    if name and name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not spec.get("group"):
        yield required("spec.group")
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    for key in ("plural", "kind"):
        if not names.get(key):
            yield required(f"spec.names.{key}")
    yield from _version_errors(encode(spec.get("versions") or []))
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        text = "a conversion webhook is not emulated: no object is stored in two versions here"
        yield forbidden_field("spec.conversion.strategy", text)


@lru_cache(maxsize=64)
def _version_errors(versions: bytes) -> tuple[FieldError, ...]:
    """Remembered, since the clusters of a process get the same definitions one after the other."""
    return tuple(_versions(decode_any(versions)))


def _versions(versions: list[Object]) -> Iterator[FieldError]:
    stored = sum(bool(version.get("storage")) for version in versions)
    if stored != 1:
        text = "must have exactly one version marked as storage version"
        yield invalid_text("spec.versions", _shown(versions), text)
    schemas = [_schema(version) for version in versions]
    for index, version in enumerate(versions):
        path, name = f"spec.versions[{index}].name", version.get("name") or ""
        yield from invalid_name(path, name, label_1035)
    # equal schemas are one schema of the definition
    same = schemas == schemas[:1] * len(schemas) and (len(schemas) == 1 or None not in schemas)
    for index, version in enumerate(versions[:1] if same else versions):
        yield from _version(version, f"spec.versions[{index}]", same)


def _schema(version: Object) -> Raw | None:
    schema: Raw | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _shown(versions: list[Object]) -> str:
    return "[" + ", ".join(version.get("name", "") for version in versions) + "]"


def _version(version: Object, path: str, alone: bool) -> Iterator[FieldError]:
    raw = _schema(version)
    # errors name the only schema and its selectable fields as those of the definition
    holder = "spec" if alone else path
    if raw is None:
        yield required(f"{path}.schema.openAPIV3Schema")
        if version.get("selectableFields"):
            text = "may only be set when validations.schema is included"
            yield invalid_text(f"{holder}.selectableFields", '""', text)
        return
    where = f"{holder}.validation.openAPIV3Schema" if alone else f"{path}.schema.openAPIV3Schema"
    if raw.get("type") != "object":
        yield _root_type(raw, where)
    yield from _structural(raw, where)
    yield from rule_errors(raw, where)


def _root_type(raw: Raw, path: str) -> FieldError:
    if not raw.get("type"):
        return required(f"{path}.type", "must not be empty at the root")
    return invalid_value(f"{path}.type", raw["type"], "must be object at the root")


def _structural(raw: Raw, path: str) -> Iterator[FieldError]:
    """Every node needs a type, every map list keys. The innermost errors come first."""
    for name, below in (raw.get("properties") or {}).items():
        where = f"{path}.properties[{name}]"
        yield from _structural(below, where)
        if _untyped(below):
            yield required(f"{where}.type", "must not be empty for specified object fields")
    for key, what in (("items", "array items"), ("additionalProperties", "object fields")):
        below = raw.get(key)
        if isinstance(below, dict):
            yield from _structural(below, f"{path}.{key}")
            if _untyped(below):
                text = f"must not be empty for specified {what}"
                yield required(f"{path}.{key}.type", text)
    kind = raw.get("type")
    if kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if kind == "array" and not raw.get("items"):
        yield required(f"{path}.items", "must be specified")
    if raw.get("x-kubernetes-list-type") == "map" and not raw.get("x-kubernetes-list-map-keys"):
        text = "must not be empty if x-kubernetes-list-type is map"
        yield required(f"{path}.x-kubernetes-list-map-keys", text)


def _untyped(raw: Raw) -> bool:
    free = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
    return not raw.get("type") and not any(raw.get(key) for key in free)
