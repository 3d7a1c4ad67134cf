"""The annotation of client-side apply, which kubectl takes over by server-side apply."""

from __future__ import annotations

import json

from kube_in_process.managed_fields.comparing import declared, difference
from kube_in_process.managed_fields.fieldset import Fields, drop
from kube_in_process.objects import Object
from kube_in_process.schema.tree import Schema

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"
"""The only manager whose applies concern the annotation."""
_ESCAPED = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}
"""What Go escapes in JSON."""


def applied_before(schema: Schema | None, live: Object) -> Fields:
    """The fields that the annotation has with the values of the object: kubectl wrote them.

    An apply by kubectl does not conflict about them.
    """
    annotation = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        configuration = json.loads(annotation) if annotation else None
    except ValueError:
        configuration = None
    if not isinstance(configuration, dict):
        return {}
    fields = declared(schema, configuration)
    change = difference(schema, {"metadata": {}, **configuration}, live)
    for path in (*change.taken, *change.removed):
        drop(fields, path)
    return fields


def bring_up_to_date(obj: Object, patch: Object) -> None:
    """Write the applied configuration into the annotation, if the object has it."""
    annotations = obj["metadata"].get("annotations") or {}
    if ANNOTATION in annotations:
        text = json.dumps(_plain(patch), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        text = text.translate(_ESCAPED)
        obj["metadata"]["annotations"] = {**annotations, ANNOTATION: f"{text}\n"}


def _plain(patch: Object) -> Object:
    metadata = dict(patch.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    if annotations.pop(ANNOTATION, None) is not None:
        metadata["annotations"] = annotations
    return {**patch, "metadata": metadata}
