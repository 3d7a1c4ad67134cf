"""The verbs of the API on plain dicts, synchronous, with the rules of every kind."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec.structs import replace

from kube_in_process.errors import not_allowed
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.seams import Clock
from kube_in_process.storage.requests import (
    Actor,
    DeleteOptions,
    ListOptions,
    WatchOptions,
    WriteOptions,
)
from kube_in_process.storage.store import Store
from kube_in_process.verbs import admitting, binding, deleting, patching, writing
from kube_in_process.verbs.reading import (
    Target,
    check_reachable,
    check_readable,
    list_objects,
    stored,
)
from kube_in_process.verbs.scale import get_scale, put_scale
from kube_in_process.verbs.state import ServerState
from kube_in_process.verbs.watches import Watch
from kube_in_process.verbs.writing import Write

SubresourceHandler = Callable[[Write, Object], Object]
"""POST to a subresource: from the write (target, actor, options) and the body to the answer."""
VirtualHandler = Callable[[Write, Object], Object]
"""create of a kind that is never stored (access reviews)."""


class Api(ServerState):
    """The core of the server: its state and the verbs.

    ``posts`` handle POST to (group, plural, subresource). ``virtual`` handle create of kinds that
    are never stored, by (group, plural).
    """

    def __init__(
        self, store: Store, clock: Clock, features: Features, rng: Random | None = None
    ) -> None:
        super().__init__(store, clock, features, rng)
        self.posts: dict[tuple[str, str, str], SubresourceHandler] = {
            ("", "pods", "binding"): binding.bind
        }
        self.virtual: dict[tuple[str, str], VirtualHandler] = {
            ("", "bindings"): binding.bind_collection
        }

    def get(self, target: Target) -> Object:
        """The object, or its scale. Raises StatusError 404."""
        if target.subresource == "scale":
            return get_scale(self, target)
        return self.outward(target.kind, target.version, stored(self, target))

    def get_at(self, target: Target, resource_version: str) -> Object:
        """get with the resourceVersion parameter; 504 for a version in the future."""
        # events are read from the storage, whose errors are those of a list
        check = check_reachable if target.kind.plural == "events" else check_readable
        check(self, resource_version)
        return self.outward(target.kind, target.version, stored(self, target))

    def list(self, target: Target, options: ListOptions, *, to_encode: bool = False) -> Object:
        """A List object; see ``list_objects``. Raises StatusError 400, 410, 422, 504."""
        return list_objects(self, target, options, to_encode=to_encode)

    def watch(self, target: Target, options: WatchOptions) -> Watch:
        """An open stream, which the caller closes. Raises StatusError 400, 422, 500."""
        return Watch(self, target, options)

    def create(
        self, actor: Actor, target: Target, obj: Object, options: WriteOptions | None = None
    ) -> Object:
        """Create an object. ``obj`` may be changed, unless the options are internal.

        Raises:
            StatusError: 400, 403, 404, 409, 422.
        """
        kind = target.kind
        write = self._write(actor, replace(target, name=""), "create", options)
        virtual = self.virtual.get((kind.group, kind.plural))
        if virtual is not None:
            unknown = self.decoder.check(kind.group, target.version_or_default, kind.kind, obj)
            if write.options.field_validation != "Ignore":
                write.options.warnings.extend(unknown)
            return virtual(write, admitting.admitted_body(write, obj))
        return self.outward(kind, target.version, writing.create(write, obj))

    def post(
        self, actor: Actor, target: Target, body: Object, options: WriteOptions | None = None
    ) -> Object:
        """POST to a subresource (binding, eviction, token). Raises StatusError."""
        kind = target.kind
        handler = self.posts.get((kind.group, kind.plural, target.subresource))
        if handler is None:
            raise not_allowed()
        write = self._write(actor, target, "create", options)
        return handler(write, admitting.admitted_body(write, body))

    def update(
        self, actor: Actor, target: Target, obj: Object, options: WriteOptions | None = None
    ) -> Object:
        """Raises StatusError 400, 404, 409, 422."""
        write = self._write(actor, target, "update", options)
        if target.subresource == "scale":
            return put_scale(write, obj)
        return self.outward(target.kind, target.version, writing.update(write, obj))

    def patch(
        self,
        actor: Actor,
        target: Target,
        patch_type: str,
        patch: Any,
        options: WriteOptions | None = None,
    ) -> Object:
        """``patch_type`` is json, merge, strategic or apply. Raises StatusError."""
        verb = "apply" if patch_type == "apply" else "patch"
        return patching.patch(self._write(actor, target, verb, options), patch_type, patch)

    def delete(self, actor: Actor, target: Target, options: DeleteOptions | None = None) -> Object:
        """Delete an object; return it, or a Status if the kind answers so. Raises StatusError."""
        main = replace(target, subresource="")
        removal = deleting.Removal(self, actor, main, options or DeleteOptions())
        return deleting.answer(removal, deleting.delete(removal))

    def delete_collection(
        self,
        actor: Actor,
        target: Target,
        options: DeleteOptions | None = None,
        chosen: ListOptions | None = None,
    ) -> Object:
        """Delete the listed objects; return the list of them as they were."""
        removal = deleting.Removal(self, actor, target, options or DeleteOptions())
        return deleting.delete_collection(removal, chosen or ListOptions())

    def _write(
        self, actor: Actor, target: Target, verb: str, options: WriteOptions | None
    ) -> Write:
        return Write(self, actor, target, verb, options or WriteOptions())
