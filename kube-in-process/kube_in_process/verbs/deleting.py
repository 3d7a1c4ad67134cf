"""delete and deletecollection: preconditions, propagation, grace periods, finalizers."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from msgspec.structs import replace

from kube_in_process import errors
from kube_in_process.errors import StatusError, Subject
from kube_in_process.kinds.strategy import Strategy
from kube_in_process.objects import Object
from kube_in_process.storage.requests import Actor, DeleteOptions, ListOptions
from kube_in_process.storage.store import Author, decode, encode
from kube_in_process.text.times import timestamp
from kube_in_process.verbs import admitting
from kube_in_process.verbs.reading import Target, list_objects, stored
from kube_in_process.verbs.state import ServerState

_OPTIONS = Subject("meta.k8s.io", "DeleteOptions")
_POLICIES = ("Foreground", "Background", "Orphan")
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"


class Removal(msgspec.Struct, frozen=True):
    """A deletion in progress."""

    state: ServerState
    actor: Actor
    target: Target
    options: DeleteOptions
    admission: bool = True
    """Whether policies and webhooks are asked. They are not about a deletion that the server makes
    for another request."""
    named: bool = True
    """Whether the request names the object, and not a collection."""

    @property
    def strategy(self) -> Strategy:
        return self.state.strategies.of(self.target.kind)

    @property
    def author(self) -> Author:
        return Author(self.actor.user, "delete")


class Removed(msgspec.Struct, frozen=True):
    """The object for the answer; ``gone``: it was removed at once."""

    obj: Object
    gone: bool


def check_options(options: DeleteOptions) -> None:
    """Refuse contradicting delete options (422)."""
    field_errors = []
    if options.orphan_dependents is not None and options.propagation:
        text = "orphanDependents and deletionPropagation cannot be both set"
        field_errors.append(errors.invalid_value("propagationPolicy", options.propagation, text))
    if options.propagation and options.propagation not in _POLICIES:
        supported = (*_POLICIES, "nil")
        field_errors.append(
            errors.not_supported("propagationPolicy", options.propagation, supported)
        )
    if any(value != "All" for value in options.dry_run):
        field_errors.append(errors.not_supported("dryRun", list(options.dry_run), ("All",)))
    if field_errors:
        raise errors.invalid(_OPTIONS, field_errors)


def delete(removal: Removal) -> Removed:
    """Delete one object, or mark it as being deleted.

    Raises:
        StatusError: 404, 409 (preconditions), 422.
    """
    check_options(removal.options)
    _warn(removal)
    removal.strategy.admit_delete(removal.target.name)
    obj = stored(removal.state, removal.target)
    _check_preconditions(removal, obj)
    before = decode(encode(obj))
    meta = obj["metadata"]
    grace = removal.strategy.grace_period(obj, removal.options)
    if removal.admission and not _waits(obj, removal.options):
        _ask(removal, obj)
    _set_finalizers(removal, meta)
    if removal.strategy.pending(obj) or grace > 0:
        return Removed(_mark(removal, before, obj, grace), False)
    marked = meta.get("deletionTimestamp") and not meta.get("deletionGracePeriodSeconds")
    if removal.strategy.marks_before_removal and not marked:
        obj = _mark(removal, before, obj, 0)
        before = decode(encode(obj))
    if removal.options.dry_run:
        return Removed(before, True)
    return Removed(removal.state.store.delete(removal.target.address, removal.author), True)


def _waits(obj: Object, options: DeleteOptions) -> bool:
    """Whether the object is being deleted already, and no sooner by this request."""
    meta = obj["metadata"]
    left = meta.get("deletionGracePeriodSeconds")
    asked = options.grace_period_seconds
    return bool(meta.get("deletionTimestamp")) and (
        left is not None and (asked is None or asked >= left)
    )


def _ask(removal: Removal, obj: Object) -> None:
    """Ask admission. The options have the grace period that a kind such as pods gets."""
    options, target = removal.options, removal.target
    if removal.strategy.marks_before_removal:
        grace = removal.strategy.grace_period(obj, options)
        options = replace(options, grace_period_seconds=grace)
    admitting.check_deletion(
        removal.state, removal.actor, target, options, obj, named=removal.named
    )


def _check_preconditions(removal: Removal, obj: Object) -> None:
    options, meta = removal.options, obj["metadata"]
    if options.uid and options.uid != meta["uid"]:
        _mismatch(removal, "UID", options.uid, meta["uid"], "deleted and then recreated")
    version = options.resource_version
    if version and version != meta["resourceVersion"]:
        _mismatch(removal, "ResourceVersion", version, meta["resourceVersion"], "modified")


def _mismatch(removal: Removal, what: str, asked: str, stored_value: str, maybe: str) -> None:
    if removal.target.kind.plural == "namespaces":
        why = f"{what} in precondition: {asked}, {what} in object meta: {stored_value}"
        raise errors.conflict(removal.target.subject, f"Precondition failed: {why}")
    raise errors.conflict(
        removal.target.typed_subject,
        f"the {what} in the precondition ({asked}) does not match the {what} in record "
        f"({stored_value}). The object might have been {maybe}",
    )


def _set_finalizers(removal: Removal, meta: Object) -> None:
    """Turn the propagation policy into a finalizer for the garbage collector."""
    if not removal.strategy.collects_garbage:
        return
    before = meta.get("finalizers") or []
    kept = [name for name in before if name not in (_ORPHAN, _FOREGROUND)]
    had = [name for name in before if name in (_ORPHAN, _FOREGROUND)]
    wanted = _propagation(removal, bool(had))
    if wanted == "Orphan":
        kept.append(_ORPHAN)
    elif wanted == "Foreground":
        kept.append(_FOREGROUND)
    elif not wanted:
        kept += had
    if set(kept) == set(before):
        return
    if kept:
        meta["finalizers"] = kept
    else:
        meta.pop("finalizers", None)


def _propagation(removal: Removal, decided: bool) -> str:
    """The policy; '' leaves the finalizers. ``decided``: an earlier deletion chose a finalizer."""
    options = removal.options
    if options.orphan_dependents is not None:
        return "Orphan" if options.orphan_dependents else "Background"
    if options.propagation:
        return options.propagation
    default = removal.strategy.default_propagation()
    return "" if decided or default == "Background" else default


def _warn(removal: Removal) -> None:
    """Warn about a deletion without a policy, even if the object does not exist."""
    options = removal.options
    warning = removal.strategy.delete_warning()
    if warning and options.orphan_dependents is None and not options.propagation:
        options.warnings.append(warning)


def _mark(removal: Removal, before: Object, obj: Object, grace: int) -> Object:
    meta = obj["metadata"]
    first = not meta.get("deletionTimestamp")
    if first:
        moment = removal.state.clock.now() + timedelta(seconds=grace)
        meta["deletionTimestamp"] = timestamp(moment)
        removal.strategy.mark_deleting(obj, grace)
        if meta.get("generation") and removal.strategy.deletion_raises_generation:
            meta["generation"] += 1
    elif grace < meta.get("deletionGracePeriodSeconds", 0):
        _shorten(removal, meta, grace)
    if obj == before or removal.options.dry_run:
        return obj
    removal.state.completed.discard(obj["metadata"]["uid"])
    return removal.state.store.put(removal.target.address, obj, removal.author)


def _shorten(removal: Removal, meta: Object, grace: int) -> None:
    moment = removal.state.clock.now() + timedelta(seconds=grace)
    meta["deletionTimestamp"] = min(meta["deletionTimestamp"], timestamp(moment))
    meta["deletionGracePeriodSeconds"] = grace


def answer(removal: Removal, removed: Removed) -> Object:
    """The answer to DELETE: the object, or a Status if the kind answers so."""
    target = removal.target
    if not removed.gone or target.kind.deletes_to == "object":
        return removal.state.outward(target.kind, target.version, removed.obj)
    details = {
        "name": target.name,
        "group": target.kind.group,
        "kind": target.kind.plural,
        "uid": removed.obj["metadata"]["uid"],
    }
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def delete_collection(removal: Removal, options: ListOptions) -> Object:
    """Delete the objects that a list with ``options`` returns, and answer with that list."""
    check_options(removal.options)
    body = list_objects(removal.state, removal.target, options)
    _warn(removal)
    silent = replace(removal.options, warnings=[])
    quiet = replace(removal, options=silent, named=False, admission=False)
    refused: list[StatusError] = []
    for target in _admitted(replace(quiet, admission=True), body["items"], refused):
        delete(replace(quiet, target=target))
    if refused:
        raise refused[0]
    return body


def _admitted(removal: Removal, items: list[Object], refused: list[StatusError]) -> list[Target]:
    """The objects that may be deleted. All are asked about before the first is deleted, as a
    request that waits for webhooks begins once more."""
    targets: list[Target] = []
    for item in items:
        meta = item["metadata"]
        target = replace(removal.target, name=meta["name"], namespace=meta.get("namespace", ""))
        try:
            obj = stored(removal.state, target)
            if not _waits(obj, removal.options):
                _ask(replace(removal, target=target), obj)
        except StatusError as error:
            refused.append(error)
        else:
            targets.append(target)
    return targets
