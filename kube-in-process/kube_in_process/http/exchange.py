"""One request, and the options in its query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from kube_in_process.errors import (
    FieldError,
    Subject,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from kube_in_process.http.routing import Route, true
from kube_in_process.kinds.kind import Kind
from kube_in_process.storage.requests import (
    Actor,
    DeleteOptions,
    ListOptions,
    WatchOptions,
    WriteOptions,
)
from kube_in_process.verbs.reading import Target, match_errors
from kube_in_process.webhook_calls import Replies

_FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")


class Exchange(msgspec.Struct, frozen=True):
    """A resource request that is allowed. ``query`` has the first value of each name."""

    method: str
    route: Route
    kind: Kind
    actor: Actor
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes | None
    warnings: list[str]
    replies: Replies = msgspec.field(default_factory=Replies)
    """The answers of webhooks that came for this request."""

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "")

    @property
    def target(self) -> Target:
        route = self.route
        return Target(self.kind, route.namespace, route.name, route.subresource, route.version)

    def integer(self, name: str) -> int | None:
        """A number in the query; None if it is not set.

        Raises:
            StatusError: 400.
        """
        text = self.query.get(name)
        if not text:
            return None
        if re.fullmatch(r"[-+]?[0-9]{1,40}", text) is None:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        value = int(text)
        if not -(2**63) <= value < 2**63:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
        return value


def list_options(exchange: Exchange) -> ListOptions:
    """Raises StatusError 400."""
    query = exchange.query
    return ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=exchange.integer("limit") or 0,
        continue_token=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
    )


def refuse_initial_events(exchange: Exchange) -> None:
    """The error for a list with sendInitialEvents (422), beside other errors."""
    field_errors = match_errors(list_options(exchange))
    text = "sendInitialEvents is forbidden for list"
    field_errors.append(forbidden_field("sendInitialEvents", text))
    raise invalid(Subject("meta.k8s.io", "ListOptions"), field_errors)


def watch_options(exchange: Exchange) -> WatchOptions:
    """The old watch path of one object selects it by its name. Raises StatusError 400."""
    query, name = exchange.query, exchange.route.name
    fields = query.get("fieldSelector", "")
    timeout = exchange.integer("timeoutSeconds")
    initial = query.get("sendInitialEvents")
    return WatchOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=f"metadata.name={name}" if name else fields,
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
        bookmarks=true(query.get("allowWatchBookmarks")),
        send_initial_events=None if initial is None else true(initial),
        timeout_seconds=None if not timeout else float(timeout),
    )


def write_options(exchange: Exchange, options_kind: str) -> WriteOptions:
    """The options of a write. ``options_kind`` (CreateOptions, ...) is for error texts (422)."""
    query = exchange.query
    validation = query.get("fieldValidation", "")
    dry_run = query.get("dryRun", "")
    field_errors = [
        *_patch_errors(exchange, options_kind),
        *_dry_run_errors([dry_run] if dry_run else []),
    ]
    if validation not in _FIELD_VALIDATION:
        field_errors.append(not_supported("fieldValidation", validation, _FIELD_VALIDATION))
    if field_errors:
        raise invalid(Subject("meta.k8s.io", options_kind), field_errors)
    return WriteOptions(
        dry_run=dry_run == "All",
        field_validation=validation or "Warn",
        field_manager=query.get("fieldManager", ""),
        force=true(query.get("force")),
        warnings=exchange.warnings,
        replies=exchange.replies,
    )


_MANAGER_LIMIT = 128


def _patch_errors(exchange: Exchange, options_kind: str) -> list[FieldError]:
    """An apply needs fieldManager; other patches may not set force."""
    query = exchange.query
    manager = query.get("fieldManager", "")
    field_errors: list[FieldError] = []
    if options_kind == "PatchOptions":
        applies = "apply-patch" in exchange.headers.get("content-type", "")
        if applies and not manager:
            field_errors.append(required("fieldManager", "is required for apply patch"))
        elif not applies and true(query.get("force")):
            text = "may not be specified for non-apply patch"
            field_errors.append(forbidden_field("force", text))
    if len(manager.encode()) > _MANAGER_LIMIT:
        field_errors.append(too_long("fieldManager", _MANAGER_LIMIT))
    if not manager.isprintable():
        field_errors.append(
            invalid_value("fieldManager", manager, "should only contain printable characters")
        )
    return field_errors


def _dry_run_errors(values: Sequence[object]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [not_supported("dryRun", list(values), ("All",))]


def delete_options(exchange: Exchange, body: Mapping[str, object]) -> DeleteOptions:
    """Delete options from the body; from the query if the body does not set them."""
    query = exchange.query
    preconditions = body.get("preconditions")
    conditions = preconditions if isinstance(preconditions, dict) else {}
    orphan = body.get("orphanDependents")
    if orphan is None and "orphanDependents" in query:
        orphan = true(query["orphanDependents"])
    grace = body.get("gracePeriodSeconds")
    if grace is None:
        grace = exchange.integer("gracePeriodSeconds")
    asked = query.get("dryRun", "")
    dry_run = body.get("dryRun") or ([asked] if asked else [])
    if not isinstance(dry_run, list):
        dry_run = [dry_run]
    return DeleteOptions(
        uid=str(conditions.get("uid") or ""),
        resource_version=str(conditions.get("resourceVersion") or ""),
        propagation=str(body.get("propagationPolicy") or query.get("propagationPolicy") or ""),
        grace_period_seconds=grace if isinstance(grace, int) else None,
        orphan_dependents=orphan if isinstance(orphan, bool) else None,
        dry_run=tuple(str(value) for value in dry_run),
        warnings=exchange.warnings,
        replies=exchange.replies,
    )
