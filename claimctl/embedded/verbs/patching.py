"""PATCH: apply a patch of any type."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from claimctl.embedded.errors import StatusError, Subject, bad_request, forbidden_field, invalid
from claimctl.embedded.patch.json_patch import PatchError, json_patch, merge, refused
from claimctl.embedded.patch.strategic import strategic_patch
from claimctl.embedded.storage.raw_json import sorted_keys
from claimctl.embedded.text import json_text
from claimctl.embedded.verbs import writing
from claimctl.embedded.verbs.scale import get_scale, put_scale
from claimctl.embedded.verbs.writing import Write
from claimctl.wire.base import Object


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
    return write.state.outward(target.kind, target.version, writing.patch(write, change, strategic))


def _patch_scale(write: Write, change: Callable[[Object], Object]) -> Object:
    scale = change(get_scale(write.state, write.target))
    shown = json.dumps(scale, separators=(",", ":"))
    try:
        unknown = write.state.decoder.check("autoscaling", "v1", "Scale", scale)
    except StatusError as error:
        raise writing.unreadable(error, shown) from None
    paths = [text.removeprefix('unknown field "').removesuffix('"') for text in unknown]
    writing.report_unknown(write, paths, scale)
    return put_scale(write, scale)


def _change(patch_type: str, body: Any) -> Callable[[Object], Object]:
    if patch_type == "json":
        return lambda obj: _json(obj, body)
    if not isinstance(body, dict):
        raise bad_request("the patch is not an object")
    if patch_type == "merge":
        # Go's library reads every value of the patch into maps, whose keys it writes in sorted
        # order
        return lambda obj: dict(merge(obj, sorted_keys(body)))
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
        if str(error).startswith(("list element types", "map: ")):
            raise StatusError(500, "", str(error)) from None
        raise bad_request(str(error)) from None
