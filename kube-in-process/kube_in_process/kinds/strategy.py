"""What each kind does with its objects at a write: defaults, preparation, validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import msgspec

from kube_in_process.errors import FieldError
from kube_in_process.kinds.authorization import Authorizer
from kube_in_process.kinds.kind import Kind
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.seams import Clock
from kube_in_process.storage.requests import Actor, DeleteOptions
from kube_in_process.storage.store import Store
from kube_in_process.text.names import subdomain


class WriteContext(msgspec.Struct, frozen=True):
    """A write and its server. ``verb`` is create, update, patch or apply."""

    features: Features
    store: Store
    clock: Clock
    rng: Random
    authorizer: Authorizer
    actor: Actor
    kind: Kind
    verb: str
    subresource: str
    internal: bool
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """JSON paths of a custom kind's scale subresource."""

    spec: str
    status: str
    selector: str = ""


class Strategy:
    """The rules of an ordinary kind; subclasses override what differs.

    ``name_check`` returns the errors of a name. ``standard_finalizers``: a finalizer without a
    domain must be one of Kubernetes. ``status_keeps`` are the parts of the metadata that a write
    through /status does not change. ``validates_metadata``: the kind's own rules check the
    metadata, in addition to the rules for all kinds. ``revalidates``: an update checks the whole
    object again, with its metadata. ``collects_garbage``: a deletion may add a finalizer for its
    propagation policy. ``warns_of_finalizers``: a finalizer without a domain causes a warning.
    ``status_alone``: the kind's own rules do not check the metadata in a write through /status.
    ``marks_before_removal``: an object is stored once more as being deleted before it is removed,
    so that watchers see MODIFIED and then DELETED. ``scale`` is where objects of a custom kind keep
    the fields of their scale subresource.
    """

    standard_finalizers: bool = True
    name_check: Callable[[str], list[str]] = staticmethod(subdomain)
    status_keeps: ClassVar[tuple[str, ...]] = (
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "selfLink",
    )
    initial_status: Mapping[str, Any] | None = None
    deletion_raises_generation: bool = True
    marks_before_removal: bool = False
    revalidates: bool = True
    validates_metadata: bool = True
    collects_garbage: bool = True
    warns_of_finalizers: bool = False
    status_alone: bool = False
    scale: ScalePaths | None = None
    selectable_fields: ClassVar[Mapping[str, str]] = {}
    """Fields that field selectors may name, beside name and namespace, and their default values."""

    def default(self, obj: Object, features: Features) -> None:
        """Fill in defaults; on create and on every update."""

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        """Reset fields that a client may not set at create."""
        if "status" in context.kind.subresources:
            obj.pop("status", None)
        if self.initial_status is not None:
            obj["status"] = dict(self.initial_status)
        if context.kind.generation:
            obj["metadata"]["generation"] = 1

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        """Restore what this subresource may not change, and increase the generation."""
        if context.subresource == "status":
            self._keep_all_but_status(new, old)
            return
        if "status" in context.kind.subresources:
            restore(new, old, "status")
        if context.kind.generation and self.spec_changed(new, old):
            metadata = new["metadata"]
            metadata["generation"] = metadata.get("generation", 0) + 1

    def _keep_all_but_status(self, new: Object, old: Object) -> None:
        for key in [key for key in new if key not in ("status", "metadata")]:
            if key not in old:
                del new[key]
        for key in old:
            if key not in ("status", "metadata"):
                new[key] = old[key]
        for key in self.status_keeps:
            restore(new["metadata"], old["metadata"], key)

    def spec_changed(self, new: Object, old: Object) -> bool:
        """Whether a write through the main resource increases metadata.generation."""
        return _without_meta(new) != _without_meta(old)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """The errors of a new object, except those of its metadata."""
        return []

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """The errors of a change, except those of the metadata."""
        return self.validate(new, context)

    def is_complete(self, body: Object) -> bool:
        """Whether an object that is created with this body stores all that it shows."""
        return False

    def read_back(self, obj: Object) -> bool:
        """Add fields that a new object shows but does not store; return whether it has any."""
        return False

    def admit(self, obj: Object, context: WriteContext) -> None:
        """Refuse a create by policy, before validation. Raises StatusError."""

    def admit_update(self, new: Object, old: Object, context: WriteContext) -> None:
        """Refuse a valid change by policy, before it is stored. Raises StatusError."""

    def admit_delete(self, name: str) -> None:
        """Refuse a delete by policy. Raises StatusError."""

    def warn(self, obj: Object, context: WriteContext) -> None:
        """Warn about a valid new object, before it is stored."""

    def warn_of_change(self, new: Object, old: Object, context: WriteContext) -> None:
        """Warn about a valid change."""

    def created(self, obj: Object, context: WriteContext) -> None:
        """Called after the object was stored."""

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """The values of the fields that ``selectable_names`` gives."""
        return {path: _text(obj, path) or unset for path, unset in self.selectable_fields.items()}

    def selectable_names(self) -> tuple[str, ...]:
        return tuple(self.selectable_fields)

    def grace_period(self, obj: Object, options: DeleteOptions) -> int:
        """Seconds from the deletionTimestamp to the end of the object; 0 deletes at once."""
        return 0

    def pending(self, obj: Object) -> bool:
        """Whether an object that is being deleted must wait."""
        return bool(obj["metadata"].get("finalizers"))

    def mark_deleting(self, obj: Object, grace: int) -> None:
        """Change the object when its deletion begins, in addition to the deletionTimestamp."""
        obj["metadata"]["deletionGracePeriodSeconds"] = grace

    def default_propagation(self) -> str:
        return "Background"

    def delete_warning(self) -> str:
        """The warning for a deletion without a propagation policy; '' for none."""
        return ""

    stored_plain = False
    """Whether the kind's own ``outward`` returns objects in the stored version unchanged."""

    def decoded(self, obj: Object) -> None:
        """Change a body as the kind's decoder does. Server-side apply does not use it."""

    def inward(self, obj: Object, kind: Kind, version: str) -> Object:
        """Convert from the version of a request to the stored form. May change ``obj``."""
        return obj

    def outward(self, obj: Object, kind: Kind, version: str) -> Object:
        """Convert from the stored form to the version of a request. May change ``obj``."""
        obj["kind"] = kind.kind
        obj["apiVersion"] = kind.api_version(version)
        return obj


def restore(new: Object, old: Object, key: str) -> None:
    """Give a field its old value, or remove it if it had none."""
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def _text(obj: Object, path: str) -> str:
    """The value at a path of fields as text, empty if it is not set."""
    value: Any = obj
    for name in path.split("."):
        value = (value or {}).get(name)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _without_meta(obj: Object) -> Object:
    skipped = ("metadata", "status", "kind", "apiVersion")
    return {key: value for key, value in obj.items() if key not in skipped}


class Strategies:
    """Strategies by (group, plural). Other kinds are ordinary."""

    def __init__(self) -> None:
        self._ordinary = Strategy()
        self._by_plural: dict[tuple[str, str], Strategy] = {}

    def register(self, group: str, plural: str, strategy: Strategy) -> None:
        self._by_plural[group, plural] = strategy

    def remove(self, group: str, plural: str) -> None:
        self._by_plural.pop((group, plural), None)

    def of(self, kind: Kind) -> Strategy:
        return self._by_plural.get((kind.group, kind.plural), self._ordinary)
