"""Decode request bodies; errors have the server's texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import NoneType
from typing import Any

import yaml

from kube_in_process.errors import NO_VERSION, StatusError, bad_request
from kube_in_process.http.protobuf import MEDIA_TYPE, ProtobufError, decode_body
from kube_in_process.objects import Object
from kube_in_process.storage.raw_json import keep_texts
from kube_in_process.text import json_text

_JSON = ("application/json", "")
_YAML = "application/yaml"
_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_WITH_PARAMETERS = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass")
_GO_TYPES = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_GO_HEADER = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


def media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def parse_object(
    body: bytes | None, headers: Mapping[str, str], expected: str, repeated: list[str]
) -> Object:
    """Decode a body that must be an object; ``expected`` is its Kind.

    Repeated field names are added to ``repeated``: ``duplicate field "metadata.name"``.

    Raises:
        StatusError: 400 for what cannot be parsed, 415 for another media type.
    """
    kind = media_type(headers)
    if kind == _YAML:
        return _from_yaml(body or b"", expected)
    if kind == MEDIA_TYPE:
        return _from_protobuf(body or b"")
    if kind not in _JSON:
        raise _unknown_format()
    return _from_json(body or b"", expected, repeated)


def _unknown_format() -> StatusError:
    text = "the body of the request was in an unknown format - accepted media types include"
    return StatusError(415, "UnsupportedMediaType", f"{text}: {_TYPES}")


def _from_protobuf(body: bytes) -> Object:
    try:
        return decode_body(body)
    except ProtobufError as error:
        raise StatusError(415, "UnsupportedMediaType", str(error)) from None


def _from_yaml(body: bytes, expected: str) -> Object:
    try:
        value = json_text.parse(json.dumps(yaml.load(body, Loader=_Loader)).encode())
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        why = f"couldn't get version/kind; yaml parse error: {error}"
        raise _unrecognized(expected, why) from None
    if not isinstance(value, dict):
        raise _unrecognized(expected, "couldn't get version/kind")
    return _typed(value, expected)


class _Loader(yaml.SafeLoader):
    """Loads YAML with the types of JSON: times stay strings."""


_Loader.yaml_implicit_resolvers = {
    key: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith(":timestamp")]
    for key, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _unrecognized(expected: str, why: str) -> StatusError:
    return bad_request(f"the object provided is unrecognized (must be of type {expected}): {why}")


def _from_json(body: bytes, expected: str, repeated: list[str]) -> Object:
    try:
        value = _decode(body, repeated)
    except ValueError as error:
        text = _go_text(error)
        why = f"couldn't get version/kind; json parse error: {text} ({_shown(body)})"
        raise _unrecognized(expected, why) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        go = _GO_TYPES.get(type(value), "value")
        text = f"json: cannot unmarshal {go} into Go value of type {_GO_HEADER}"
        why = f"couldn't get version/kind; json parse error: {text} ({body.hex()})"
        raise _unrecognized(expected, why)
    if expected in _WITH_PARAMETERS:
        keep_texts(value, body)
    return _typed(value, expected)


def _typed(value: Object, expected: str) -> Object:
    """Check that kind and apiVersion are strings, if present. Raises StatusError 400."""
    for key in ("apiVersion", "kind"):
        if not isinstance(value.get(key), (str, NoneType)):
            go = _GO_TYPES.get(type(value[key]), "object")
            text = f"json: cannot unmarshal {go} into Go struct field .{key} of type string"
            raise _unrecognized(expected, f"couldn't get version/kind; json parse error: {text}")
    return value


def check_custom(body: Object, sent: bytes, expected: str, version: str, ignored: bool) -> None:
    """Check the kind and the version of a body of a custom kind, which is read without a Go type.

    ``ignored``: unknown fields are ignored. Then the server names the kind that it expects.

    Raises:
        StatusError: 400.
    """
    text = sent.decode("utf-8", "replace")
    shown = _shown(sent) if text.startswith("{") else sent.hex()
    if not body.get("kind"):
        why = f"Object 'Kind' is missing in '{text}'"
        if ignored:
            named = f'{expected} in version "{version}" cannot be handled as a {expected}'
            raise bad_request(f"{named}: {why}")
        raise _unrecognized(expected, f"{why} ({shown})")
    if body.get("apiVersion", "") is None:
        named = f'{expected} in version "" cannot be handled as a {expected}'
        raise bad_request(f"{named}: {NO_VERSION}")
    given = body.get("apiVersion") or ""
    if given.count("/") > 1:
        raise _unrecognized(expected, f"unexpected GroupVersion string: {given} ({shown})")


def _shown(body: bytes) -> str:
    if not body:
        return "<empty>"
    if len(body) > 30:
        return body[:30].decode("utf-8", "replace") + " ..."
    return body.decode("utf-8", "replace")


def _go_text(error: ValueError) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    position = error.pos
    text = error.doc
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    if position >= len(text) or error.msg.startswith("Unterminated"):
        return "unexpected end of JSON input"
    shown = f"invalid character '{text[position]}'"
    if error.msg == "Extra data":
        return f"{shown} after top-level value"
    if "property name" in error.msg:
        return f"{shown} looking for beginning of object key string"
    return f"{shown} looking for beginning of value"


class _Repeated(dict[str, Any]):
    """An object with repeated keys."""

    keys_twice: list[str]


def _pairs(pairs: list[tuple[str, Any]]) -> Object:
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    marked = _Repeated(fields)
    names = [key for key, _ in pairs]
    marked.keys_twice = list(dict.fromkeys(n for n in names if names.count(n) > 1))
    return marked


def _decode(body: bytes, repeated: list[str]) -> Any:
    value = json_text.parse(body, _pairs)
    _find_repeated(value, "", repeated)
    return value


def _find_repeated(value: Any, path: str, repeated: list[str]) -> None:
    if isinstance(value, _Repeated):
        repeated += [f'duplicate field "{path}{key}"' for key in value.keys_twice]
    if isinstance(value, dict):
        for key, inner in value.items():
            _find_repeated(inner, f"{path}{key}.", repeated)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _find_repeated(inner, f"{path.removesuffix('.')}[{index}].", repeated)


_PATCH_TYPES = {"json": (list, "[]handlers.jsonPatchOp")}
_OBJECT = (dict, "map[string]interface {}")


def parse_patch(body: bytes | None, patch_type: str) -> Any:
    """The body of a PATCH: a list of operations for ``json``, else an object.

    Raises:
        StatusError: 400.
    """
    try:
        value = json_text.parse(body or b"")
    except ValueError as error:
        raise bad_request(f"error decoding patch: {_go_text(error)}") from None
    wanted, go_type = _PATCH_TYPES.get(patch_type, _OBJECT)
    if isinstance(value, wanted):
        return value
    given = "object" if isinstance(value, dict) else _GO_TYPES.get(type(value), "value")
    text = f"json: cannot unmarshal {given} into Go value of type {go_type}"
    raise bad_request(f"error decoding patch: {text}")
