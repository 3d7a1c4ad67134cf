"""get and list, with all meanings of resourceVersion, limit and continue."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

import msgspec

from kube_in_process import errors
from kube_in_process.errors import FieldError, StatusError, Subject
from kube_in_process.kinds.kind import Kind
from kube_in_process.objects import Object
from kube_in_process.storage.requests import ListOptions
from kube_in_process.storage.selectors import (
    FieldTerm,
    Requirement,
    Selector,
    SelectorError,
    parse_fields,
    parse_labels,
)
from kube_in_process.storage.store import Address, Compacted, Items, decode, decode_any, outline
from kube_in_process.storage.tokens import Continue, decode_continue
from kube_in_process.verbs.state import ServerState

_META_FIELDS = ("metadata.name", "metadata.namespace")
_OPTIONS = Subject("meta.k8s.io", "ListOptions")
_MATCHES = ("Exact", "NotOlderThan", "")
_TOO_OLD = "The resourceVersion for the provided list is too old."
_TOO_OLD_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class Target(msgspec.Struct, frozen=True):
    """The target of a request; ``name`` is '' for collections."""

    kind: Kind
    namespace: str
    name: str = ""
    subresource: str = ""
    version: str = ""

    @property
    def version_or_default(self) -> str:
        return self.version or self.kind.version

    @property
    def address(self) -> Address:
        group, plural = self.kind.storage
        namespace = self.namespace if self.kind.namespaced else ""
        return Address(group, plural, namespace, self.name)

    @property
    def subject(self) -> Subject:
        return Subject(self.kind.group, self.kind.plural, self.name)

    @property
    def typed_subject(self) -> Subject:
        """The subject of a 422: it has the Kind instead of the plural."""
        group = "" if self.kind.plural == "events" else self.kind.group
        return Subject(group, self.kind.kind, self.name)


def stored(state: ServerState, target: Target) -> Object:
    """The stored object.

    Raises:
        StatusError: 404.
    """
    obj = state.store.get(target.address)
    if obj is None:
        raise errors.not_found(target.subject)
    return obj


def selector_of(state: ServerState, kind: Kind, labels: str, fields: str) -> Selector:
    """Parse the selectors of a request.

    Raises:
        StatusError: 400, in the words of the server.
    """
    requirements, terms = parsed_selectors(labels, fields)
    strategy = state.strategies.of(kind)
    own = strategy.selectable_names()
    # kinds with own fields, and custom kinds, list all selectable fields themselves
    listed = bool(own) or kind.custom
    known = _META_FIELDS[:1] if listed and not kind.namespaced else _META_FIELDS
    for term in terms:
        if term.key not in (*known, *own):
            raise errors.bad_request(_unknown_field(kind, term.key, bool(own)))

    def fields_of(obj: Object) -> dict[str, str]:
        metadata = obj.get("metadata") or {}
        basic = {
            "metadata.name": metadata.get("name", ""),
            "metadata.namespace": metadata.get("namespace", ""),
        }
        return {**basic, **strategy.selectable(obj)}

    return Selector(requirements, terms, fields_of)


def parsed_selectors(
    labels: str, fields: str
) -> tuple[tuple[Requirement, ...], tuple[FieldTerm, ...]]:
    """Parse both selectors without regard to the kind's fields. Raises StatusError 400."""
    try:
        return parse_labels(labels), parse_fields(fields)
    except SelectorError as error:
        raise errors.bad_request(str(error)) from None


def _unknown_field(kind: Kind, key: str, has_own: bool) -> str:
    if kind.group == "resource.k8s.io" and has_own:
        version = kind.api_version(kind.versions[0])
        return f"field label not supported for {version}, Kind={kind.kind}: {key}"
    if kind.plural == "jobs":
        return f'field label "{key}" not supported for Job'
    if kind.custom or has_own:
        return f"field label not supported: {key}"
    return f'"{key}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def is_version(text: str) -> bool:
    return text.isascii() and text.isdigit()


def parse_version(text: str) -> int:
    """A resourceVersion parameter as a number.

    Raises:
        StatusError: 400.
    """
    if is_version(text):
        return int(text)
    raise errors.bad_request(f"invalid resource version: {not_a_version(text)}")


def not_a_version(text: str) -> str:
    """The error text for a resourceVersion that is no number."""
    why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
    return f'resourceVersion: Invalid value: "{text}": {why}'


def match_errors(options: ListOptions) -> list[FieldError]:
    """The errors of resourceVersionMatch on a list."""
    match, version = options.resource_version_match, options.resource_version
    path = "resourceVersionMatch"
    field_errors = []
    if match:
        if not version:
            text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            field_errors.append(errors.forbidden_field(path, text))
        if options.continue_token:
            text = "resourceVersionMatch is forbidden when continue is provided"
            field_errors.append(errors.forbidden_field(path, text))
        if match not in _MATCHES:
            field_errors.append(errors.not_supported(path, match, _MATCHES))
        if match == "Exact" and version == "0":
            text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            field_errors.append(errors.forbidden_field(path, text))
    return field_errors


def too_large_version(asked: int, current: int) -> StatusError:
    """504 for a version in the future; the client should try again."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        {"causes": [cause], "retryAfterSeconds": 1},
        {"retry-after": "1"},
    )


@dataclass(frozen=True, slots=True)
class _Page:
    """The state to read, the start, and the limit."""

    revision: int
    items: Items
    start: str = ""
    limit: int = 0


def check_readable(state: ServerState, version: str) -> None:
    """Check the resourceVersion of a get: 500 if it is no number, else as for a list."""
    if version and not is_version(version):
        raise StatusError(500, "", not_a_version(version))
    check_reachable(state, version)


def check_reachable(state: ServerState, version: str) -> None:
    """Refuse a read at a version in the future (504)."""
    if version and (asked := parse_version(version)) > state.store.revision:
        raise too_large_version(asked, state.store.revision)


def list_objects(
    state: ServerState, target: Target, options: ListOptions, *, to_encode: bool = False
) -> Object:
    """The list for the answer.

    Args:
        to_encode: the answer is only to be encoded. Fields of objects that are stored as they are
            sent then stay encoded, which takes a small part of the time.

    Raises:
        StatusError: 400, 410, 422, 504.
    """
    parsed_selectors(options.label_selector, options.field_selector)
    if wrong := match_errors(options):
        raise errors.invalid(_OPTIONS, wrong)
    selector = selector_of(state, target.kind, options.label_selector, options.field_selector)
    page = _only_named(_page(state, target, options), target, options)
    as_stored = state.stored_as(target.kind, target.version) and not selector.fields
    read = outline if to_encode and as_stored else decode
    keys = page.items.keys
    start = bisect_right(keys, page.start) if page.start else 0
    objects: list[Object] = []
    last, after = "", len(keys)
    for index in range(start, len(keys)):
        if page.limit and len(objects) == page.limit:
            after = index
            break
        obj = read(page.items.data(keys[index]))
        if selector.everything or selector.matches(_labelled(obj) if read is outline else obj):
            objects.append(obj)
            last = keys[index]
    remaining = len(keys) - after
    metadata: Object = {"resourceVersion": str(page.revision)}
    if target.kind.custom:
        metadata["continue"] = ""
    if remaining:
        # a real server does not check either whether the selector matches any of the rest
        metadata["continue"] = Continue(page.revision, last).encode()
        if selector.everything:
            metadata["remainingItemCount"] = remaining
    return _list_body(state, target, metadata, objects)


def _labelled(obj: Object) -> Object:
    """The decoded labels of an outline. To decode all of its metadata would take most of a LIST."""
    labels = outline(obj["metadata"]).get("labels", b"null")
    return {"metadata": {"labels": decode_any(labels)}}


def _list_body(
    state: ServerState, target: Target, metadata: Object, objects: list[Object]
) -> Object:
    kind = target.kind
    outward = [state.outward(kind, target.version, obj) for obj in objects]
    if not kind.custom:
        for obj in outward:
            del obj["kind"], obj["apiVersion"]
    return {
        "kind": kind.listed_as,
        "apiVersion": kind.api_version(target.version),
        "metadata": metadata,
        "items": outward,
    }


def _page(state: ServerState, target: Target, options: ListOptions) -> _Page:
    limit = max(options.limit, 0)
    if options.continue_token:
        return _next_page(state, target, options, limit)
    version = options.resource_version
    check_reachable(state, version)
    exact = options.resource_version_match == "Exact"
    implied = limit and version not in ("", "0") and not options.resource_version_match
    group, plural = target.kind.storage
    if exact or implied:
        revision = parse_version(version)
        return _Page(revision, _items_at(state, target, revision, _TOO_OLD), limit=limit)
    items = state.store.items(group, plural, target.namespace)
    return _Page(state.store.revision, items, limit=0 if version == "0" else limit)


def _only_named(page: _Page, target: Target, options: ListOptions) -> _Page:
    """The page of a list of one object by its name: the server reads that object alone.

    So such a list has no second page. From ``ListPredicate`` of the generic registry.
    """
    terms = parse_fields(options.field_selector)
    name = next((term.value for term in terms if term.equal and term.key == "metadata.name"), "")
    everywhere = target.kind.namespaced and not target.namespace
    if not name or everywhere or options.continue_token:
        return page
    return replace(page, items=page.items.named(name))


def _next_page(state: ServerState, target: Target, options: ListOptions, limit: int) -> _Page:
    if options.resource_version not in ("", "0"):
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    token = decode_continue(options.continue_token)
    revision = state.store.revision if token.revision is None else token.revision
    try:
        items = _items_at(state, target, revision, _TOO_OLD_TOKEN)
    except StatusError as error:
        error.metadata = {"continue": Continue(None, token.key).encode()}
        raise
    return _Page(revision, items, token.key, limit)


def _items_at(state: ServerState, target: Target, revision: int, too_old: str) -> Items:
    group, plural = target.kind.storage
    try:
        return state.store.items_at(group, plural, target.namespace, revision)
    except Compacted:
        raise errors.expired(too_old) from None
