"""The rules for the metadata of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from uuid import UUID

from kube_in_process.errors import (
    FieldError,
    forbidden_field,
    invalid_name,
    invalid_text,
    invalid_value,
    required,
    too_long,
)
from kube_in_process.kinds.strategy import Strategy, restore
from kube_in_process.objects import Object
from kube_in_process.text import names

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_ANNOTATIONS_LIMIT = 256 * 1024
_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "namespace",
    "name",
)


def new_uid(rng: Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))


def generated_name(base: str, rng: Random) -> str:
    """The base, cut so that the name has at most 63 characters, and five random characters."""
    return base[:58] + "".join(rng.choice(_SUFFIX) for _ in range(5))


def keep_server_owned(new: Object, old: Object) -> None:
    """Restore the fields that an update may not change, without an error.

    ``validate_meta_update`` refuses changes of the other ones.
    """
    for key in (*_SERVER_OWNED, "generation"):
        begun = key == "deletionTimestamp" and old.get(key)
        if begun or key not in _IMMUTABLE or new.get(key) in (None, ""):
            restore(new, old, key)


def tidy(metadata: Object) -> None:
    """Remove empty values, as Go's omitempty does."""
    for key in [key for key, value in metadata.items() if value in (None, "", {}, [])]:
        del metadata[key]


def validate_meta(metadata: Object, strategy: Strategy) -> list[FieldError]:
    """The errors of the metadata of a new object."""
    errors = _name_base(metadata, strategy.name_check)
    name = metadata.get("name", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += invalid_name("metadata.name", name, strategy.name_check)
    return [*errors, *_validate_rest(metadata), *_standard(metadata, strategy)]


def _name_base(metadata: Object, name_check: Callable[[str], list[str]]) -> list[FieldError]:
    """The errors of generateName."""
    base = metadata.get("generateName", "")
    checked = base[:-1] + "a" if base.endswith("-") else base
    wrong = name_check(checked) if base else []
    return [invalid_value("metadata.generateName", base, text) for text in wrong]


def _validate_rest(metadata: Object) -> list[FieldError]:
    return [
        *validate_labels(metadata.get("labels") or {}, "metadata.labels"),
        *_annotations(metadata.get("annotations") or {}),
        *_owners(metadata.get("ownerReferences") or []),
        *_finalizers(metadata.get("finalizers") or []),
    ]


def validate_only_template_metadata(metadata: Object, path: str) -> list[FieldError]:
    """The errors of the metadata of a template that refuses all fields but labels and annotations.

    From ``ValidateTemplateObjectMeta``, which names the fields after those of the Go struct.
    """
    names_of = {"uid": "uID"}
    refused = [
        forbidden_field(f"{path}.{names_of.get(key, key)}", "cannot be set")
        for key, value in metadata.items()
        if value and key not in ("labels", "annotations")
    ]
    return [*validate_template_metadata(metadata, path), *refused]


def validate_template_metadata(metadata: Object, path: str) -> list[FieldError]:
    """The errors of the labels and annotations of a template."""
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return [
        *validate_labels(labels, f"{path}.labels"),
        *_annotations(annotations, f"{path}.annotations"),
    ]


def validate_labels(labels: Object, path: str) -> list[FieldError]:
    """The errors of a map of labels."""
    errors: list[FieldError] = []
    for key, value in sorted(labels.items()):
        errors += invalid_name(path, key, names.qualified_name)
        errors += invalid_name(path, value, names.label_value)
    return errors


def _annotations(annotations: Object, path: str = "metadata.annotations") -> list[FieldError]:
    errors: list[FieldError] = []
    for key in sorted(annotations):
        errors += [invalid_value(path, key, t) for t in names.qualified_name(key.lower())]
    size = sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items())
    return [*errors, too_long(path, _ANNOTATIONS_LIMIT)] if size > _ANNOTATIONS_LIMIT else errors


def _owner_version(version: str, path: str) -> list[FieldError]:
    """Of an apiVersion, only an empty or unreadable version is an error."""
    if version.count("/") > 1 or not version.rpartition("/")[2]:
        return [invalid_value(path, version, "version must not be empty")]
    return []


def drop_repeated_owners(metadata: Object, verb: str) -> list[str]:
    """Remove repeated owners in place, and return the warning, if any.

    A real server checks a patched object later than a whole one, so the warnings differ.
    """
    owners = metadata.get("ownerReferences") or []
    kept: list[Object] = []
    again: list[str] = []
    for owner in owners:
        if owner in kept:
            again.append(owner.get("uid") or "")
        else:
            kept.append(owner)
    if not again:
        return []
    metadata["ownerReferences"] = kept
    when = " after mutating admission happens" if verb in ("patch", "apply") else ""
    return [
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner "
        "references in 1.20+, and may reject such requests as early as 1.24; please fix your "
        f"requests; duplicate UID(s) observed: {', '.join(again)}"
    ]


def _owners(owners: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    controllers = []
    for owner in owners:
        path, text = "metadata.ownerReferences", "must not be empty"
        errors += _owner_version(owner.get("apiVersion") or "", f"{path}.apiVersion")
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                errors.append(invalid_value(f"{path}.{key}", owner.get(key) or "", text))
        if owner.get("controller"):
            controllers.append(owner)
    if len(controllers) > 1:
        first, second = (f"{o.get('kind')}/{o.get('name')}" for o in controllers[:2])
        detail = (
            "Only one reference can have Controller set to true. Found "
            f'"true" in references for {first} and {second}'
        )
        errors.append(invalid_value("metadata.ownerReferences", owners, detail))
    return errors


_STANDARD = ("orphan", "foregroundDeletion", "kubernetes")


def _standard(metadata: Object, strategy: Strategy) -> list[FieldError]:
    """A finalizer without a domain must be one of Kubernetes."""
    if not strategy.standard_finalizers:
        return []
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid_value(f"metadata.finalizers[{index}]", name, text)
        for index, name in enumerate(metadata.get("finalizers") or [])
        if "/" not in name and name not in _STANDARD
    ]


def finalizer_warnings(new: Object, old: Object) -> list[str]:
    """Warnings about new finalizers without a domain, for kinds that do not refuse them."""
    text = (
        "prefer a domain-qualified finalizer name to avoid accidental conflicts with other "
        "finalizer writers"
    )
    before = old.get("finalizers") or []
    return [
        f'metadata.finalizers: "{name}": {text}'
        for name in new.get("finalizers") or []
        if "/" not in name and name not in (*_STANDARD, *before)
    ]


def _finalizers(finalizers: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    path = "metadata.finalizers"
    for name in finalizers:
        errors += invalid_name(path, name, names.qualified_name)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid_value(path, finalizers, text))
    return errors


def validate_meta_update(
    new: Object, old: Object, strategy: Strategy | None, *, whole: bool
) -> list[FieldError]:
    """The errors of a change of metadata. ``strategy`` is None if the kind has no rules for it.

    ``whole``: the write is not one of the status, so that the kind's rules for generateName count.

    The server checks the metadata and its change for all kinds, the change again in the strategy of
    the kind, and the metadata once more if the strategy ``revalidates``. So causes repeat.
    """
    change = _validate_change(new, old)
    field_errors = [*_name_base(new, names.path_segment), *_validate_rest(new), *change]
    if strategy is None:
        return field_errors
    if strategy.validates_metadata:
        field_errors += [*change, *_standard(new, strategy)]
    if strategy.revalidates:
        field_errors += validate_again(new, strategy) if whole else _again(new, strategy)
    return field_errors


def validate_again(metadata: Object, strategy: Strategy) -> list[FieldError]:
    """The errors of the metadata, with the rules of the kind. The name cannot change."""
    return [*_name_base(metadata, strategy.name_check), *_again(metadata, strategy)]


def _again(metadata: Object, strategy: Strategy) -> list[FieldError]:
    return [*_validate_rest(metadata), *_standard(metadata, strategy)]


_IMMUTABLE = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def _validate_change(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += _new_finalizers(new, old)
    for key in _IMMUTABLE:
        if new.get(key) != old.get(key):
            errors.append(invalid_value(f"metadata.{key}", new.get(key), "field is immutable"))
    return [
        *errors,
        *validate_labels(new.get("labels") or {}, "metadata.labels"),
        *_annotations(new.get("annotations") or {}),
        *_owners(new.get("ownerReferences") or []),
    ]


def _new_finalizers(new: Object, old: Object) -> list[FieldError]:
    kept = old.get("finalizers") or []
    added = [name for name in new.get("finalizers") or [] if name not in kept]
    if not added:
        return []
    shown = ", ".join(f'"{name}"' for name in sorted(set(added)))
    detail = (
        "no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{shown}}}"
    )
    return [forbidden_field("metadata.finalizers", detail)]


def version_required() -> FieldError:
    """The error for a PUT without a resourceVersion, if the kind does not allow that."""
    path = "metadata.resourceVersion"
    return invalid_text(path, "0", "must be specified for an update")
