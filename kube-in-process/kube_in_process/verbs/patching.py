"""PATCH: apply a patch of any type."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import NoneType
from typing import Any

from msgspec.structs import replace

from kube_in_process.errors import (
    NO_VERSION,
    StatusError,
    Subject,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
)
from kube_in_process.kinds.emulation import refusal
from kube_in_process.objects import Object
from kube_in_process.patch.json_patch import PatchError, json_patch, merge, refused
from kube_in_process.patch.strategic import strategic_patch
from kube_in_process.schema.conversion import Unconvertible
from kube_in_process.schema.typed import go_value
from kube_in_process.storage.raw_json import all_sorted, as_patched, sorted_keys
from kube_in_process.storage.store import decode, encode
from kube_in_process.text import json_text
from kube_in_process.verbs import writing
from kube_in_process.verbs.incoming import (
    SCHEME,
    check_name,
    check_type,
    inward,
    unconvertible,
)
from kube_in_process.verbs.reading import stored
from kube_in_process.verbs.scale import get_scale, put_scale
from kube_in_process.verbs.writing import Write


def patch(write: Write, patch_type: str, body: Any) -> Object:
    """The answer to a PATCH, in the version of the request.

    Raises:
        StatusError: 400, 404, 409, 422.
    """
    target = write.target
    if patch_type == "apply":
        return write.state.outward(target.kind, target.version, writing.apply(write, body))
    if write.options.force:
        text = "may not be specified for non-apply patch"
        raise invalid(Subject("meta.k8s.io", "PatchOptions"), [forbidden_field("force", text)])
    change = _change(patch_type, body)
    if target.subresource == "scale":
        return _patch_scale(write, change)
    strategic = body if patch_type == "strategic" else None
    return write.state.outward(target.kind, target.version, _patch_object(write, change, strategic))


def _patch_object(
    write: Write, change: Callable[[Object], Object], strategic: Object | None
) -> Object:
    """Read, change and write. ``change`` gets the object in the version of the request.

    ``strategic`` is the patch if it is a strategic merge patch.

    Raises:
        StatusError: 400, 404, 409, 422.
    """
    old = stored(write.state, write.target)
    read = decode(as_patched(encode(old)))
    outward = write.state.outward(write.target.kind, write.target.version, read)
    new = change(write.state.decoder.as_written(write.target.kind, write.target.version, outward))
    if strategic is not None:
        write, new = replace(write, maps=True), _converted(write, new, strategic)
        # the map goes into a Go struct of the kind, whatever it names itself
        new |= {key: outward[key] for key in ("apiVersion", "kind")}
    patched = encode(new)
    _check_patched(write, outward, new)
    try:
        obj = inward(write, new)
    except StatusError as error:
        shown = _compact(decode(patched), sort_keys=True)
        raise _undecodable(error, shown, strategic) from None
    writing.check_namespace(write, obj["metadata"])
    check_name(write.target, obj["metadata"])
    return writing.modify(write, old, obj)


def _check_patched(write: Write, old: Object, new: Object) -> None:
    """Refuse a patch result without a version or metadata."""
    target = write.target
    texts = all(isinstance(new.get(key), (str, NoneType)) for key in ("apiVersion", "kind"))
    if target.kind.custom and texts and not new.get("kind"):
        shown = _compact(new, sort_keys=True)
        raise _invalid_patch(shown, f"Object 'Kind' is missing in '{shown}'")
    if target.kind.custom and texts and new.get("apiVersion", "") is None:
        raise _invalid_patch(_compact(new), NO_VERSION)
    unversioned = texts and not new.get("apiVersion") and not write.maps
    unversioned = unversioned and not target.kind.custom
    if unversioned and (new.get("kind") or old["kind"]) != old["kind"]:
        raise _of_another_kind(write, new)
    if unversioned:
        unknown = sorted(new.keys() - {"kind", "apiVersion"})
        _report_unknown(write, [f'unknown field "{name}"' for name in unknown], new)
        check_name(target, {})
    metadata = new.get("metadata")
    if metadata is None or not texts:
        new["metadata"] = metadata if isinstance(metadata, dict) else {}
    elif not isinstance(metadata, dict):
        _check_type_alone(write, new)


def _of_another_kind(write: Write, new: Object) -> StatusError:
    """422 (or 403): without a version, the server reads the internal type of that kind."""
    kind, target = new["kind"], write.target
    group = target.kind.group
    if kind in ("Status", "Scale"):
        # these belong to several groups
        return refusal("a patch of apiVersion and kind", target.kind.resource)
    if write.state.kinds.by_kind(group, kind) is None:
        where = f'the internal version of group "{group}"'
        return _invalid_patch(_compact(new), f'no kind "{kind}" is registered for {where} {SCHEME}')
    given = f"{group.partition('.')[0] or 'core'}.{kind}"
    return _invalid_patch(_compact(new), unconvertible(given, target))


def _check_type_alone(write: Write, new: Object) -> None:
    """Refuse an object whose metadata is no object, after another type of the object."""
    target = write.target
    version, name = target.version_or_default, target.kind.kind
    try:
        if target.kind.custom:
            write.state.decoder.clean(target.kind, version, new)
        else:
            check_type(write, new)
            write.state.decoder.check(target.kind.group, version, name, new)
    except StatusError as error:
        raise _undecodable(error, _compact(new)) from None


def _report_unknown(write: Write, texts: list[str], patched: Object) -> None:
    """Warn of unknown fields of a patched object, or refuse them under Strict."""
    if texts and write.options.field_validation == "Strict":
        raise _invalid_patch(_compact(patched), f"strict decoding error: {', '.join(texts)}")
    if write.options.field_validation != "Ignore":
        write.options.warnings.extend(texts)


def _converted(write: Write, new: Object, patched: Object) -> Object:
    target = write.target
    try:
        return write.state.decoder.convert(target.kind, target.version_or_default, new)
    except Unconvertible as error:
        raise _invalid_patch(go_value(patched), str(error)) from None


def _undecodable(error: StatusError, shown: str, patched: Object | None = None) -> StatusError:
    """422: the patched object cannot be decoded. Quote it, or the strategic merge patch."""
    _, cannot, why = error.message.partition(" cannot be handled as a ")
    if not cannot:
        return error
    return _invalid_patch(shown if patched is None else go_value(patched), why.partition(": ")[2])


def _invalid_patch(shown: str, why: str) -> StatusError:
    return invalid(Subject("", ""), [invalid_value("patch", shown, why)])


def _compact(obj: Object, *, sort_keys: bool = False) -> str:
    return json.dumps(obj, sort_keys=sort_keys, separators=(",", ":"))


def _patch_scale(write: Write, change: Callable[[Object], Object]) -> Object:
    scale = change(get_scale(write.state, write.target))
    shown = _compact(scale)
    try:
        unknown = write.state.decoder.check("autoscaling", "v1", "Scale", scale)
    except StatusError as error:
        raise _undecodable(error, shown) from None
    _report_unknown(write, unknown, scale)
    return put_scale(write, scale)


def _change(patch_type: str, body: Any) -> Callable[[Object], Object]:
    if patch_type == "json":
        return lambda obj: _json(obj, body)
    if not isinstance(body, dict):
        raise bad_request("the patch is not an object")
    if patch_type == "merge":
        # Go's library reads every value of the patch into maps, whose keys it writes in sorted
        # order
        return lambda obj: dict(merge(obj, all_sorted(body)))
    return lambda obj: _strategic(obj, body)


def _json(obj: Object, operations: Any) -> Object:
    if not isinstance(operations, list):
        raise bad_request("the patch is not a list of operations")
    try:
        patched = json_patch(obj, operations)
        json_text.check_depth(patched)
    except (PatchError, ValueError):
        raise refused() from None
    return patched


def _strategic(obj: Object, body: Object) -> Object:
    raw = body.get("data") if obj.get("kind") == "ControllerRevision" else None
    if isinstance(raw, dict) and raw:
        text = "unable to find api field in struct RawExtension for the json field"
        raise StatusError(500, "", f'{text} "{next(iter(raw))}"')
    try:
        return dict(sorted_keys(strategic_patch(obj, body)))
    except PatchError as error:
        if "declared merge key" in str(error) or str(error).startswith("list element types"):
            raise StatusError(500, "", str(error)) from None
        raise bad_request(str(error)) from None
