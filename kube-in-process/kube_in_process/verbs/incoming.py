"""A write in progress, and the conversion of its body: types, fields, stored form."""

from __future__ import annotations

from types import NoneType
from typing import Any

import msgspec

from kube_in_process import errors
from kube_in_process.kinds import metadata
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.objects import Object
from kube_in_process.storage.requests import Actor, WriteOptions
from kube_in_process.storage.store import Author, decode, encode
from kube_in_process.verbs.reading import Target
from kube_in_process.verbs.state import ServerState


class Write(msgspec.Struct, frozen=True):
    """A write in progress. ``verb`` is create, update, patch or apply. ``maps``: the object was
    patched as a map, as by a strategic merge patch. ``complete``: see ``Strategy.is_complete``."""

    state: ServerState
    actor: Actor
    target: Target
    verb: str
    options: WriteOptions
    maps: bool = False
    complete: bool = False

    @property
    def strategy(self) -> Strategy:
        return self.state.strategies.of(self.target.kind)

    @property
    def context(self) -> WriteContext:
        state = self.state
        return WriteContext(
            features=state.features,
            store=state.store,
            clock=state.clock,
            rng=state.rng,
            authorizer=state.authorizer,
            actor=self.actor,
            kind=self.target.kind,
            verb=self.verb,
            subresource=self.target.subresource,
            internal=self.options.internal,
            warnings=self.options.warnings,
        )

    @property
    def author(self) -> Author:
        return Author(self.actor.user, self.verb, self.target.subresource)

    @property
    def manager(self) -> str:
        return self.options.field_manager or self.actor.manager or self.actor.user


def inward(write: Write, body: Object) -> Object:
    """Convert a body to the stored form; check version, kind and fields.

    Raises:
        StatusError: 400 for another kind or version, or for unknown fields under Strict.
    """
    target, options = write.target, write.options
    obj: Object = body if not options.internal else decode(encode(body))
    obj.setdefault("metadata", {})
    if obj["metadata"] is None:
        obj["metadata"] = {}
    if target.kind.custom and isinstance(obj["metadata"], dict):
        _texts(obj["metadata"])
    if target.kind.custom and not options.internal and _is_misnamed(write, obj):
        return _misnamed(write, obj)
    if not options.internal:
        check_type(write, obj)
        _check_fields(write, obj)
    if write.verb != "apply":
        write.strategy.decoded(obj)
    if not options.internal:
        options.warnings.extend(metadata.drop_repeated_owners(obj["metadata"], write.verb))
    obj = write.strategy.inward(obj, target.kind, target.version)
    metadata.tidy(obj["metadata"])
    head = {"kind": target.kind.kind, "apiVersion": target.kind.api_version()}
    return {**head, "metadata": obj["metadata"], **obj, **head}


def _texts(meta: Object) -> None:
    """A null among labels or annotations is an empty string in Go."""
    for key in ("labels", "annotations"):
        values = meta.get(key)
        if isinstance(values, dict):
            meta[key] = {k: "" if value is None else value for k, value in values.items()}


def check_name(target: Target, meta: Object) -> None:
    """Refuse an object without a name, or with another name than in the URL (400)."""
    name = meta.get("name", "")
    if not name:
        text = f"({target.name} based on URL) was undeterminable: name must be provided"
        raise errors.bad_request(f"the name of the object {text}")
    if name != target.name:
        text = f"({name}) does not match the name on the URL ({target.name})"
        raise errors.bad_request(f"the name of the object {text}")


def check_type(write: Write, obj: Object) -> None:
    target = write.target
    wanted = target.kind.api_version(target.version)
    for key in ("apiVersion", "kind"):
        if not isinstance(obj.get(key), (str, NoneType)):
            raise errors.bad_request(_no_text(obj[key], key, target))
    given = (obj.get("apiVersion") or wanted, obj.get("kind") or target.kind.kind)
    if given[1] != target.kind.kind or given[0] != wanted:
        raise errors.bad_request(_wrong_type(write.state, given, target, obj))
    obj["apiVersion"], obj["kind"] = given


def _is_misnamed(write: Write, obj: Object) -> bool:
    """Whether an object of a custom kind names another kind or version, or none."""
    wanted = (write.target.kind.api_version(write.target.version), write.target.kind.kind)
    version = obj.get("apiVersion")
    given = ("" if version is None else version, obj.get("kind"))
    return given != wanted and all(isinstance(part, str) for part in given)


def _misnamed(write: Write, obj: Object) -> Object:
    """Decode an object of a custom kind that names another kind or version.

    Custom kinds have no Go types. So the object keeps these names, and validation refuses them;
    a write through /status restores the old ones first. Only the schema of the named version is
    used: no field of another version is known, and the fields of another kind are not checked.

    Raises:
        StatusError: 400 for another version in a create or an update.
    """
    target = write.target
    wanted = target.kind.api_version(target.version)
    version = obj["apiVersion"] = obj.get("apiVersion") or ""
    decoded: Object = {"metadata": obj["metadata"]}
    problems = write.state.decoder.clean(target.kind, target.version_or_default, decoded)
    if version.count("/") > 1:
        name = f'{obj["kind"]} in version "{version}" cannot be handled as a {obj["kind"]}'
        raise errors.bad_request(f"{name}: unexpected GroupVersion string: {version}")
    group, _, short = version.rpartition("/")
    if (group, obj["kind"]) == (target.kind.group, target.kind.kind):
        unknown = sorted(obj.keys() - {"apiVersion", "kind", "metadata"})
        problems += [f'unknown field "{name}"' for name in unknown]
        obj = {"apiVersion": version, "kind": obj["kind"], "metadata": decoded["metadata"]}
    _report(write, problems, short)
    if version != wanted and write.verb != "patch":
        raise errors.bad_request(_other_version(version, wanted))
    write.options.warnings.extend(metadata.drop_repeated_owners(obj["metadata"], write.verb))
    metadata.tidy(obj["metadata"])
    return obj


def check_api_version(obj: Object) -> None:
    """Refuse an object of a custom kind whose patch left it without a version (500)."""
    if obj["apiVersion"]:
        return
    why = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
    text = f"Internal error occurred: {why}"
    raise errors.StatusError(500, "InternalError", text, {"causes": [{"message": why}]})


def _other_version(version: str, wanted: str) -> str:
    return (
        f"the API version in the data ({version}) does not match the expected API version "
        f"({wanted})"
    )


_JSON_NAMES = {bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


def _no_text(value: Any, key: str, target: Target) -> str:
    kind = target.kind.kind
    name = _JSON_NAMES.get(type(value), "value")
    text = f"json: cannot unmarshal {name} into Go struct field .{key} of type string"
    why = f"couldn't get version/kind; json parse error: {text}"
    return f'{kind} in version "{target.version}" cannot be handled as a {kind}: {why}'


SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'


_ASKED = (
    ("authentication.k8s.io", "TokenRequest"),
    ("autoscaling", "Scale"),
    ("policy", "Eviction"),
    ("", "Binding"),
)
"""Kinds that exist and are never stored."""


def _wrong_type(state: ServerState, given: tuple[str, str], target: Target, obj: Object) -> str:
    (version, kind), wanted = given, target.kind.api_version(target.version)
    group, _, short = version.rpartition("/")
    cannot = f'{kind} in version "{short}" cannot be handled as a {target.kind.kind}'
    known = state.kinds.by_kind(group, kind)
    if known is not None and (known.custom or not (group or short in known.versions)):
        # no Go type: that of a custom kind, or of the core group in another version
        return f'{cannot}: no kind "{kind}" is registered for version "{version}" {SCHEME}'
    asked = (group, kind) in _ASKED
    if (known is not None or asked) and kind != target.kind.kind:
        problem = state.decoder.problem(group, short, kind, obj)
        if problem:
            return f"{cannot}: {problem}"
        return f"{cannot}: {unconvertible(f'{short}.{kind}', target)}"
    if version != wanted and known is not None:
        return _other_version(version, wanted)
    return f'{cannot}: no kind "{kind}" is registered for version "{version}" {SCHEME}'


def unconvertible(given: str, target: Target) -> str:
    """The error of an object of another Go type: ``given`` is its package and name."""
    hub = target.kind.group.partition(".")[0] or "core"
    return f"converting ({given}) to ({hub}.{target.kind.kind}): unknown conversion"


def _check_fields(write: Write, obj: Object) -> None:
    version = write.target.version_or_default
    problems = write.state.decoder.clean(write.target.kind, version, obj, maps=write.maps)
    if write.verb == "apply":
        # the merge has refused unknown fields already; there is no warning about the others
        problems = []
    _report(write, problems, version)


def _report(write: Write, problems: list[str], version: str) -> None:
    """Warn of unknown and repeated fields, or refuse them under Strict. ``version`` is the body's
    without its group."""
    unknown = [*write.options.repeated, *problems]
    if write.options.field_validation == "Strict" and unknown:
        raise errors.bad_request(_strict(write.target, unknown, version))
    if write.options.field_validation != "Ignore":
        write.options.warnings.extend(unknown)


def _strict(target: Target, unknown: list[str], version: str) -> str:
    name = target.kind.kind
    shown = ", ".join(unknown)
    return (
        f'{name} in version "{version}" cannot be handled as a {name}: '
        f"strict decoding error: {shown}"
    )
