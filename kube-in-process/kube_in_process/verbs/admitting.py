"""Where a write asks admission: its request is made here, and the changed object read back."""

from __future__ import annotations

from kube_in_process.admission.request import (
    CREATE,
    DELETE,
    UPDATE,
    AdmissionRequest,
    GroupVersionKind,
)
from kube_in_process.objects import Object
from kube_in_process.storage.requests import Actor, DeleteOptions
from kube_in_process.storage.store import decode, encode
from kube_in_process.verbs.incoming import Write
from kube_in_process.verbs.reading import Target
from kube_in_process.verbs.state import ServerState

_SHAPES = {
    "binding": GroupVersionKind("", "v1", "Binding"),
    "eviction": GroupVersionKind("policy", "v1", "Eviction"),
    "token": GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest"),
    "scale": GroupVersionKind("autoscaling", "v1", "Scale"),
}


def asks(write: Write) -> bool:
    """Whether admission is asked about a write at all."""
    return write.options.admission and not write.state.admission.is_idle


def mutated(write: Write, obj: Object, old: Object | None = None) -> Object:
    """An object in the stored form as admission changes it; the same one if it does not.

    Raises:
        StatusError: a refusal.
        CallsWanted: answers of webhooks are missing.
    """
    if not asks(write) or _is_misnamed(write, obj):
        return obj
    request = _request(write, _shown(write, obj), old and _shown(write, old))
    options = write.options
    changed = write.state.admission.mutate(request, options.replies, options.warnings)
    if changed.obj is None or changed.obj == request.obj:
        return obj
    target = write.target
    stored = write.strategy.inward(changed.obj, target.kind, target.version_or_default)
    stored |= {"kind": target.kind.kind, "apiVersion": target.kind.api_version()}
    write.strategy.default(stored, write.state.features)
    return stored


def _is_misnamed(write: Write, obj: Object) -> bool:
    """Whether an object of a custom kind names another kind or version, which is refused later."""
    kind = write.target.kind
    return kind.custom and (obj.get("apiVersion"), obj.get("kind")) != (
        kind.api_version(),
        kind.kind,
    )


def check(write: Write, obj: Object, old: Object | None = None) -> None:
    """Let admission refuse an object in the stored form. Raises as ``mutated``."""
    if asks(write):
        request = _request(write, _shown(write, obj), old and _shown(write, old))
        options = write.options
        write.state.admission.validate(request, options.replies, options.warnings)


def admitted_body(write: Write, body: Object, old: Object | None = None) -> Object:
    """The body for a subresource, or of a review, as admission changes it. Raises as ``mutated``.

    ``old`` is what the body replaces.
    """
    if not asks(write):
        return body
    request = _request(write, body, old)
    options, admission = write.options, write.state.admission
    shape = request.shape
    version = f"{shape.group}/{shape.version}" if shape.group else shape.version
    meta = dict(body.get("metadata") or {})
    if write.target.kind.namespaced and write.target.subresource:
        meta.setdefault("namespace", write.target.namespace)
    shown = {**body, "kind": shape.kind, "apiVersion": version, "metadata": meta}
    request = admission.mutate(request.with_object(shown), options.replies, options.warnings)
    admission.validate(request, options.replies, options.warnings)
    return request.obj or body


def _shown(write: Write, obj: Object) -> Object:
    """A copy of an object in the version of the request."""
    target = write.target
    return write.state.outward(target.kind, target.version_or_default, decode(encode(obj)))


def _request(write: Write, obj: Object, old: Object | None) -> AdmissionRequest:
    target, options = write.target, write.options
    kind, version = target.kind, target.version_or_default
    name = target.name or (obj.get("metadata") or {}).get("name", "")
    update = old is not None
    asked: Object = {
        "kind": "UpdateOptions" if update else "CreateOptions",
        "apiVersion": "meta.k8s.io/v1",
    }
    if options.dry_run:
        asked["dryRun"] = ["All"]
    if options.field_manager:
        asked["fieldManager"] = options.field_manager
    if options.field_validation != "Warn":
        asked["fieldValidation"] = options.field_validation
    return AdmissionRequest(
        kind=kind,
        version=version,
        asked=version,
        subresource=target.subresource,
        shape=_SHAPES.get(target.subresource) or GroupVersionKind(kind.group, version, kind.kind),
        namespace=_namespace(target, name),
        name=name,
        operation=UPDATE if update else CREATE,
        actor=write.actor,
        options=asked,
        dry_run=options.dry_run,
        obj=obj,
        old=old,
    )


def _namespace(target: Target, name: str) -> str:
    """The namespace of a request; that of a namespace is its own."""
    return name if target.kind.resource == "namespaces" else target.namespace


def check_deletion(
    state: ServerState,
    actor: Actor,
    target: Target,
    options: DeleteOptions,
    old: Object,
    *,
    named: bool,
) -> None:
    """Let admission refuse a deletion. ``named`` is false in the deletion of a collection.

    Raises:
        StatusError: a refusal.
        CallsWanted: answers of webhooks are missing.
    """
    if state.admission.is_idle:
        return
    kind, version = target.kind, target.version_or_default
    request = AdmissionRequest(
        kind=kind,
        version=version,
        asked=version,
        subresource="",
        shape=GroupVersionKind(kind.group, version, kind.kind),
        namespace=_namespace(target, target.name),
        name=target.name if named else "",
        operation=DELETE,
        actor=actor,
        options=_delete_options(options),
        dry_run=bool(options.dry_run),
        obj=None,
        old=state.outward(kind, version, decode(encode(old))),
    )
    request = state.admission.mutate(request, options.replies, options.warnings)
    state.admission.validate(request, options.replies, options.warnings)


def _delete_options(options: DeleteOptions) -> Object:
    conditions = {"uid": options.uid, "resourceVersion": options.resource_version}
    asked = {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": options.grace_period_seconds,
        "preconditions": {key: value for key, value in conditions.items() if value} or None,
        "orphanDependents": options.orphan_dependents,
        "propagationPolicy": options.propagation or None,
        "dryRun": list(options.dry_run) or None,
    }
    return {key: value for key, value in asked.items() if value is not None}
