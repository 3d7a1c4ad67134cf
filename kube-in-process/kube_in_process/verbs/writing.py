"""create, update and apply: from a body to the store. ``patching`` uses their parts."""

from __future__ import annotations

import json

from msgspec.structs import replace

from kube_in_process import errors
from kube_in_process.admission.service_accounts import give_account
from kube_in_process.kinds import metadata
from kube_in_process.managed_fields.apply import ApplyRequest
from kube_in_process.managed_fields.managers import FieldWrite, has_two_orders
from kube_in_process.objects import Object
from kube_in_process.schema.conversion import Unconvertible
from kube_in_process.storage.raw_json import sorted_keys
from kube_in_process.storage.store import decode, encode
from kube_in_process.text.times import timestamp
from kube_in_process.verbs import admitting
from kube_in_process.verbs.incoming import Write as Write
from kube_in_process.verbs.incoming import check_api_version, check_name, inward
from kube_in_process.verbs.reading import Target


def create(write: Write, body: Object) -> Object:
    """Create an object; return it in the stored form.

    Raises:
        StatusError: 400, 403, 404 (no namespace), 409, 422, 500.
    """
    write = replace(write, complete=write.strategy.is_complete(body))
    obj = inward(write, body)
    check_namespace(write, obj["metadata"])
    return _insert(write, obj)


def check_namespace(write: Write, meta: Object) -> None:
    namespace = write.target.namespace
    if not write.target.kind.namespaced:
        meta.pop("namespace", None)
        return
    if meta.get("namespace", namespace) != namespace:
        raise errors.bad_request(errors.OTHER_NAMESPACE)
    meta["namespace"] = namespace


def _insert(write: Write, obj: Object) -> Object:
    state, meta = write.state, obj["metadata"]
    unset: tuple[str, ...] = ("uid",)
    if write.verb == "create":
        unset = (*unset, "deletionTimestamp", "deletionGracePeriodSeconds")
    if write.verb == "create" or not write.options.dry_run:
        # an update that creates leaves this to the storage, where a dry run does not come
        unset = (*unset, "selfLink")
    if write.verb != "apply":
        unset = (*unset, "managedFields")
    for key in unset:
        meta.pop(key, None)
    write.strategy.default(obj, state.features)
    # the creator owns what it sent and the defaults, but not what the server adds below
    _record(write, None, obj)
    state.admit_namespace(write.target.kind, meta.get("namespace", ""), meta.get("name", ""))
    obj = _admitted(write, obj)
    meta = obj["metadata"]
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = metadata.generated_name(meta["generateName"], state.rng)
    meta["uid"] = metadata.new_uid(state.rng)
    meta["creationTimestamp"] = timestamp(state.clock.now())
    write.strategy.prepare_create(obj, write.context)
    field_errors = write.strategy.validate(obj, write.context)
    if write.strategy.validates_metadata and not _is_misnamed(write, obj):
        field_errors = [*metadata.validate_meta(meta, write.strategy), *field_errors]
    _refuse(
        _subject(write.target, obj), field_errors or metadata.validate_meta(meta, write.strategy)
    )
    if write.strategy.warns_of_finalizers:
        write.options.warnings.extend(metadata.finalizer_warnings(meta, {}))
    write.strategy.warn(obj, write.context)
    admitting.check(write, obj)
    return _store_new(write, obj)


def _admitted(write: Write, obj: Object) -> Object:
    """A new object as admission changes it. The rules of its kind see each change."""
    state = write.state
    if write.target.kind.resource == "pods" and state.features.service_accounts:
        give_account(obj, state.store, state.rng, write.options.replies)
    write.strategy.admit(obj, write.context)
    changed = admitting.mutated(write, obj)
    if changed is not obj:
        write.strategy.admit(changed, write.context)
    return changed


def _store_new(write: Write, obj: Object) -> Object:
    target = _named(write.target, obj["metadata"]["name"])
    version = obj["metadata"].pop("resourceVersion", "")
    if version.isdigit() and int(version) and not write.options.dry_run:
        # the storage takes another text for no version
        text = "resourceVersion should not be set on objects to be created"
        raise errors.StatusError(500, "", text)
    stored = write.state.store.get(target.address)
    if stored is not None:
        deleting = bool(stored["metadata"].get("deletionTimestamp"))
        generated = bool(obj["metadata"].get("generateName"))
        # events of both groups are stored as one kind, which an error about a generated name gives
        events = target.kind.plural == "events" and generated
        subject = errors.Subject("", "events", target.name) if events else target.subject
        raise errors.already_exists(subject, deleting=deleting, generated=generated)
    obj["metadata"] = _in_order(obj["metadata"])
    write.state.decoder.settle(target.kind, obj)
    write.options.outcome.created = True
    completed = write.strategy.read_back(obj)
    if write.options.dry_run:
        kept = {"resourceVersion": version} if version else {}
        return {**obj, "metadata": {**obj["metadata"], **kept}}
    if completed and not write.complete:
        write.state.completed.add(obj["metadata"]["uid"])
    obj["metadata"] = _in_order({**obj["metadata"], "resourceVersion": ""})
    write.state.store.put(target.address, obj, write.author)
    write.strategy.created(obj, write.context)
    return obj


def _named(target: Target, name: str) -> Target:
    return Target(target.kind, target.namespace, name, target.subresource, target.version)


_META_ORDER = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)


def _in_order(meta: Object) -> Object:
    first = {key: meta[key] for key in _META_ORDER if key in meta}
    return {**first, **{key: value for key, value in meta.items() if key not in first}}


def _refuse(subject: errors.Subject, field_errors: list[errors.FieldError]) -> None:
    if field_errors:
        raise errors.invalid(subject, field_errors)


def _subject(target: Target, obj: Object) -> errors.Subject:
    """The subject of the errors of an object. One of a custom kind may name another type."""
    name = obj["metadata"].get("name", "")
    if not target.kind.custom:
        return _named(target, name).typed_subject
    return errors.Subject(obj["apiVersion"].rpartition("/")[0], obj["kind"], name)


_NOT_MANAGED = frozenset({"events", "leases", "nodes", "pods"})
"""Kinds that components write very often: managed fields for their writes would be too slow."""


def _record(write: Write, old: Object | None, new: Object) -> None:
    unmanaged = write.options.internal and write.target.kind.plural in _NOT_MANAGED
    if write.verb == "apply" or unmanaged or write.target.subresource == "binding":
        return
    if _is_misnamed(write, new):
        # the schema does not fit the object, which so loses its owners
        new["metadata"].pop("managedFields", None)
        return
    moment = timestamp(write.state.clock.now())
    fields = FieldWrite(
        kind=write.target.kind,
        version=write.target.version_or_default,
        old=None if old is None else _as_asked(write, old),
        new=_as_asked(write, new),
        manager=write.manager,
        subresource=write.target.subresource,
        time=moment,
    )
    recorded = write.state.managed_fields.record(fields)
    if recorded:
        new["metadata"]["managedFields"] = recorded
    elif recorded is not None:
        new["metadata"].pop("managedFields", None)


def _is_misnamed(write: Write, obj: Object) -> bool:
    """Whether an object of a custom kind names another kind or version."""
    return (obj["apiVersion"], obj["kind"]) != (
        write.target.kind.api_version(),
        write.target.kind.kind,
    )


def _as_asked(write: Write, obj: Object) -> Object:
    """The object in the version of the request, which managers' fields refer to."""
    target = write.target
    if write.state.stored_as(target.kind, target.version):
        return obj
    return write.state.outward(target.kind, target.version, decode(encode(obj)))


def update(write: Write, body: Object) -> Object:
    """PUT; return the object in the stored form.

    Raises:
        StatusError: 400, 404, 409, 422.
    """
    obj = inward(write, body)
    target, meta = write.target, obj["metadata"]
    check_namespace(write, meta)
    check_name(target, meta)
    old = write.state.store.get(target.address)
    if old is None:
        if target.kind.create_on_update and not meta.get("uid"):
            _check_number(meta)
        return _create_on_update(write, obj)
    if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
        raise errors.conflict(target.subject, other_uid(write, meta["uid"], old["metadata"]["uid"]))
    return modify(write, old, obj)


def _create_on_update(write: Write, obj: Object) -> Object:
    target = write.target
    if not target.kind.create_on_update or target.subresource:
        raise errors.not_found(target.subject)
    if obj["metadata"].get("uid"):
        raise errors.conflict(target.subject, other_uid(write, obj["metadata"]["uid"], ""))
    return _insert_named(write, obj)


def _insert_named(write: Write, obj: Object) -> Object:
    """Create the object that an update or an apply names. The storage drops its resourceVersion,
    where a dry run does not come."""
    if not write.options.dry_run:
        obj["metadata"].pop("resourceVersion", None)
    return _insert(write, obj)


_STORED_AS = {"nodes": "minions", "services": "services/specs"}


def other_uid(write: Write, uid: str, stored_uid: str) -> str:
    """The storage's error text for a UID that differs from the found one ('' without an object)."""
    address = write.target.address
    plural = _STORED_AS.get(address.plural, address.plural)
    group = address.group if write.target.kind.custom else ""
    parts = [part for part in (group, plural, address.namespace, address.name) if part]
    return (
        f"StorageError: invalid object, Code: 4, Key: /registry/{'/'.join(parts)}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
        f"UID in object meta: {stored_uid}"
    )


def modify(write: Write, old: Object, new: Object) -> Object:
    """Replace ``old`` by ``new``, as far as the subresource allows; both in the stored form.

    A write without changes keeps the version and makes no event. The write that removes the last
    finalizer of an object that is being deleted removes the object, and answers with the old
    version.

    Raises:
        StatusError: 409, 422.
    """
    _check_version(write, old, new)
    check_api_version(new)
    before = decode(encode(old))
    meta, old_meta = new["metadata"], old["metadata"]
    meta["resourceVersion"] = old_meta["resourceVersion"]
    write.strategy.default(new, write.state.features)
    metadata.tidy(meta)
    subject = _subject(write.target, new)
    # the writer owns what it sent, even if that is not stored
    _record(write, before, new)
    whole = write.target.subresource not in _ADMITTED_ALREADY
    if whole:
        new = admitting.mutated(write, new, before)
        meta = new["metadata"]
        metadata.tidy(meta)
    metadata.keep_server_owned(meta, old_meta)
    write.strategy.prepare_update(new, before, write.context)
    meta = new["metadata"]
    metadata.tidy(meta)
    through_status = write.target.subresource == "status"
    rules = None if through_status and write.strategy.status_alone else write.strategy
    meta_errors = metadata.validate_meta_update(meta, old_meta, rules, whole=not through_status)
    own_errors = write.strategy.validate_update(new, before, write.context)
    _refuse(subject, [*meta_errors, *own_errors])
    write.strategy.admit_update(new, before, write.context)
    if whole:
        admitting.check(write, new, before)
    if write.strategy.warns_of_finalizers:
        write.options.warnings.extend(metadata.finalizer_warnings(meta, old_meta))
    write.strategy.warn_of_change(new, before, write.context)
    new["metadata"] = _in_order(meta)
    write.state.decoder.settle(write.target.kind, new)
    return _store_change(write, old, new)


_ADMITTED_ALREADY = ("binding", "scale")
"""Subresources with bodies of their own, about which admission was asked before."""


def _check_number(meta: Object) -> None:
    """Refuse a resourceVersion that is no number; the storage answers that with 500."""
    version = meta.get("resourceVersion", "")
    if version.isdigit() or not version:
        return
    raise errors.StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')


def _check_version(write: Write, old: Object, new: Object) -> None:
    _check_number(new["metadata"])
    version = new["metadata"].get("resourceVersion")
    if not version or version == "0":
        if write.target.kind.unconditional_update or write.verb == "create":
            return
        target = write.target
        raise errors.invalid(target.subject, [metadata.version_required()])
    if version != old["metadata"]["resourceVersion"]:
        raise errors.conflict(write.target.subject, errors.MODIFIED_MEANWHILE)


def _store_change(write: Write, old: Object, new: Object) -> Object:
    uid, meta = old["metadata"]["uid"], new["metadata"]
    if not write.options.dry_run:
        # the storage drops it, where a dry run does not come
        meta.pop("selfLink", None)
    gone = (
        meta.get("deletionTimestamp")
        and not write.strategy.pending(new)
        and not meta.get("deletionGracePeriodSeconds")
    )
    scaled = write.target.subresource == "scale" and not write.target.kind.custom
    unsettled = scaled and has_two_orders(meta.get("managedFields") or [])
    if not gone and _same(old, new) and unsettled == (uid in write.state.completed):
        return old
    if write.options.dry_run:
        return new
    write.state.completed.discard(uid)
    if gone:
        write.state.store.delete(write.target.address, write.author)
        return new
    if unsettled:
        write.state.completed.add(uid)
    return write.state.store.put(write.target.address, new, write.author)


def _same(old: Object, new: Object) -> bool:
    """Whether objects are equal, apart from the times in managed fields."""
    if old == new:
        return True
    old_meta, new_meta = old["metadata"], new["metadata"]
    if "managedFields" not in new_meta:
        return False
    return _timeless(old, old_meta) == _timeless(new, new_meta)


def _timeless(obj: Object, meta: Object) -> Object:
    fields = [{**entry, "time": ""} for entry in meta.get("managedFields") or []]
    return {**obj, "metadata": {**meta, "managedFields": fields}}


def _merged(write: Write, body: Object, merged: Object) -> Object:
    """An applied object as a struct holds it. Raises StatusError 500 if no struct can.

    The error has the name in the configuration.
    """
    target = write.target
    try:
        return write.state.decoder.convert(target.kind, target.version_or_default, merged)
    except Unconvertible as error:
        why = str(error)
    group, _, version = target.kind.api_version(target.version).rpartition("/")
    what = f"{group}/{version}, Kind={target.kind.kind}"
    given = body.get("metadata") or {}
    named = f"{given.get('namespace') or ''}/{given.get('name') or ''}"
    text = (
        f"failed to convert new object ({named}; {what}) to proper "
        f"version: unable to convert unstructured object to {what}: {why}"
    )
    raise errors.StatusError(500, "", text)


def _without_bookkeeping(obj: Object) -> Object:
    meta = {k: v for k, v in (obj.get("metadata") or {}).items() if k != "managedFields"}
    return {**obj, "metadata": meta}


def _check_applied_type(target: Target, body: Object) -> None:
    """Refuse to apply an object of another kind than that of the path."""
    version, kind = body.get("apiVersion"), body.get("kind")
    if target.kind.custom or target.subresource == "scale" or not version or not kind:
        return
    group, _, _ = version.rpartition("/")
    if (group, kind) != (target.kind.group, target.kind.kind):
        shown = version if group else f"/{version}"
        raise errors.bad_request(f"invalid object type: {shown}, Kind={kind}")


def apply(write: Write, body: Object) -> Object:
    """Server-side apply. An object that does not exist is created.

    Raises:
        StatusError: 400, 404 (of a subresource), 409, 422.
    """
    target = write.target
    old = write.state.store.get(target.address)
    if old is None and target.subresource:
        raise errors.not_found(target.subject)
    _check_applied_type(target, body)
    asked = None if old is None else _as_asked(write, old)
    request = ApplyRequest(
        kind=target.kind,
        version=target.version_or_default,
        old=asked,
        patch=body,
        manager=write.options.field_manager,
        force=write.options.force,
        subresource=target.subresource,
        time=timestamp(write.state.clock.now()),
    )
    applied = json.loads(json.dumps(write.state.applier.apply(request)))
    same = asked is not None and _without_bookkeeping(applied) == _without_bookkeeping(asked)
    obj = inward(write, _merged(write, body, applied if same else sorted_keys(applied)))
    check_name(target, obj["metadata"])
    check_namespace(write, obj["metadata"])
    if old is None:
        _check_number(obj["metadata"])
        return _insert_named(write, obj)
    return modify(write, old, obj)
