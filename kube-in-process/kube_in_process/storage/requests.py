"""The user and the options of a request, and injected faults."""

from __future__ import annotations

import msgspec

from kube_in_process.webhook_calls import Replies

MASTERS = "system:masters"


class Actor(msgspec.Struct, frozen=True):
    """The user of a request. ``manager`` is the name for managed fields."""

    user: str
    groups: tuple[str, ...] = ()
    manager: str = ""
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class ListOptions(msgspec.Struct, frozen=True):
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""


class WatchOptions(msgspec.Struct, frozen=True):
    """The options of a watch. Without ``timeout_seconds``, the server's own limit applies."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_seconds: float | None = None


class Outcome(msgspec.Struct):
    """The result of a write, beside the object."""

    created: bool = False


class WriteOptions(msgspec.Struct, frozen=True):
    """The options of a write. ``warnings`` collects texts of Warning headers. ``repeated`` has
    fields that the body has twice. The write sets ``outcome``. ``admission``: policies and webhooks
    are asked, whose answers are in ``replies``.

    ``internal`` marks a component of the cluster itself: its bodies are taken as they are, and its
    permissions are not checked.
    """

    dry_run: bool = False
    field_validation: str = "Warn"
    field_manager: str = ""
    force: bool = False
    internal: bool = False
    warnings: list[str] = msgspec.field(default_factory=list)
    repeated: list[str] = msgspec.field(default_factory=list)
    outcome: Outcome = msgspec.field(default_factory=Outcome)
    admission: bool = True
    replies: Replies = msgspec.field(default_factory=Replies)

    @property
    def created(self) -> bool:
        return self.outcome.created


class DeleteOptions(msgspec.Struct, frozen=True):
    """``propagation`` is '', Background, Foreground or Orphan. ``dry_run`` is empty, or ``All``."""

    uid: str = ""
    resource_version: str = ""
    propagation: str = ""
    grace_period_seconds: int | None = None
    orphan_dependents: bool | None = None
    dry_run: tuple[str, ...] = ()
    internal: bool = False
    warnings: list[str] = msgspec.field(default_factory=list)
    replies: Replies = msgspec.field(default_factory=Replies)


class FaultPoint(msgspec.Struct, frozen=True):
    """A request before it is served. ``verb`` is an authorization verb (get, list, watch, ...)."""

    verb: str
    group: str
    plural: str
    namespace: str
    name: str
    subresource: str
    user: str


class Fault(msgspec.Struct, frozen=True):
    """A fault of a request; its parts may be combined.

    ``delay``: seconds before the request is served. ``status``: refuse the request with this code
    (and ``retry_after``). ``drop``: break the connection without an answer, before the request is
    served, or after it with ``after_write``, so that the outcome of a write is unknown. ``hang``:
    serve the request and never answer. ``cut_after``: break a watch after that many events.
    """

    delay: float = 0.0
    status: int = 0
    reason: str = ""
    message: str = "injected fault"
    retry_after: int | None = None
    drop: bool = False
    after_write: bool = False
    hang: bool = False
    cut_after: int | None = None
