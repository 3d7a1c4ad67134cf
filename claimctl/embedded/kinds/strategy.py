"""What a kind does with its objects around a write: defaults, preparation, validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from claimctl.embedded.errors import FieldError
from claimctl.embedded.kinds.authorization import Authorizer
from claimctl.embedded.kinds.kind import Kind
from claimctl.embedded.options import Features
from claimctl.embedded.storage.requests import Actor, DeleteOptions
from claimctl.embedded.storage.store import Store
from claimctl.embedded.text.names import subdomain
from claimctl.wire.base import Object
from claimctl.wire.seams import Clock


@dataclass(frozen=True, slots=True)
class Context:
    """The write at hand, and what the server knows. ``verb`` is create, update, patch or apply."""

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
    """The habits of an ordinary kind; kinds with habits of their own override what differs.

    ``name_check`` says what is wrong with a name. ``standard_finalizers`` says that a finalizer
    without a domain has to be one that Kubernetes knows.
    ``status_keeps`` are the parts of the metadata that a write through /status leaves alone.
    ``validates_metadata`` says that the kind's own rules look at the metadata, beside the rules
    for all kinds. ``revalidates`` says that an update has the whole object checked again, its
    metadata too. ``collects_garbage`` says that a deletion may leave a finalizer of its policy.
    ``warns_of_finalizers`` says that a finalizer without a domain is warned of.
    ``marks_before_removal`` says that an object is stored once more as being deleted before it
    goes, so that watchers see MODIFIED and then DELETED. ``scale`` is where the objects of a custom
    kind keep what its scale subresource shows.
    """

    standard_finalizers: bool = True
    name_check: Callable[[str], list[str]] = staticmethod(subdomain)
    status_keeps: ClassVar[tuple[str, ...]] = (
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    )
    initial_status: Mapping[str, Any] | None = None
    deletion_raises_generation: bool = True
    marks_before_removal: bool = False
    revalidates: bool = True
    validates_metadata: bool = True
    collects_garbage: bool = True
    warns_of_finalizers: bool = False
    scale: ScalePaths | None = None
    selectable_fields: ClassVar[Mapping[str, str]] = {}
    """Fields that field selectors may name beside name and namespace, and what an unset one is."""

    def default(self, obj: Object, features: Features) -> None:
        """Fill in what the server fills in; on create, and on every update."""

    def prepare_create(self, obj: Object, context: Context) -> None:
        """Reset what a client may not set at create."""
        if "status" in context.kind.subresources:
            obj.pop("status", None)
        if self.initial_status is not None:
            obj["status"] = dict(self.initial_status)
        if context.kind.generation:
            obj["metadata"]["generation"] = 1

    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        """Keep what this subresource may not change, and raise the generation."""
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
        """Whether a write through the main resource raises metadata.generation."""
        return _without_meta(new) != _without_meta(old)

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        """What is wrong with a new object, its metadata aside."""
        return []

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        """What is wrong with a change, the metadata aside."""
        return self.validate(new, context)

    def misnamed(self, obj: Object, features: Features) -> list[FieldError]:
        """What else is wrong with a body that bears another kind (of custom kinds only)."""
        return []

    def read_back(self, obj: Object) -> bool:
        """Give a new object what it is shown with and is not stored with; whether there is any."""
        return False

    def admit(self, obj: Object, context: Context) -> None:
        """Refuse a create by policy, before validation (raises StatusError)."""

    def admit_delete(self, name: str) -> None:
        """Refuse a delete by policy (raises StatusError)."""

    def warn(self, obj: Object, context: Context) -> None:
        """Say what is odd about a new object that is valid, before it is stored."""

    def created(self, obj: Object, context: Context) -> None:
        """Something that has to happen after the object was stored."""

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """The values of the fields that ``selectable_names`` gives."""
        return {path: _text(obj, path) or unset for path, unset in self.selectable_fields.items()}

    def selectable_names(self) -> tuple[str, ...]:
        return tuple(self.selectable_fields)

    def grace_period(self, obj: Object, options: DeleteOptions) -> int:
        """Seconds from the deletionTimestamp to the end of the object; 0 deletes at once."""
        return 0

    def pending(self, obj: Object) -> bool:
        """Whether something keeps an object that is being deleted."""
        return bool(obj["metadata"].get("finalizers"))

    def mark_deleting(self, obj: Object, grace: int) -> None:
        """Beside the deletionTimestamp, when a deletion begins."""
        obj["metadata"]["deletionGracePeriodSeconds"] = grace

    def default_propagation(self) -> str:
        return "Background"

    def delete_warning(self) -> str:
        """What a deletion without a propagation policy is warned of."""
        return ""

    stored_plain = False
    """Whether ``outward``, though its own, leaves objects in the stored version as they are."""

    def inward(self, obj: Object, kind: Kind, version: str) -> Object:
        """From the version of a request to the stored form (may reuse ``obj``)."""
        return obj

    def outward(self, obj: Object, kind: Kind, version: str) -> Object:
        """From the stored form to the version of a request (may reuse ``obj``)."""
        obj["kind"] = kind.kind
        obj["apiVersion"] = kind.api_version(version)
        return obj


def restore(new: Object, old: Object, key: str) -> None:
    """Give a field the value that it had, if any."""
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
    """Strategies by (group, plural); kinds without one of their own are ordinary."""

    def __init__(self) -> None:
        self._ordinary = Strategy()
        self._by_plural: dict[tuple[str, str], Strategy] = {}

    def register(self, group: str, plural: str, strategy: Strategy) -> None:
        self._by_plural[group, plural] = strategy

    def remove(self, group: str, plural: str) -> None:
        self._by_plural.pop((group, plural), None)

    def of(self, kind: Kind) -> Strategy:
        return self._by_plural.get((kind.group, kind.plural), self._ordinary)
