"""Who wrote which version of an object: read from the API server's audit log.

The log is in blocking mode. So each request is in it before it is carried out; of one that the
server was killed in the middle of, the log has no more than that.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import msgspec
import yaml

from claimctl.wire.base import decode

AUDITED = {
    "resource.k8s.io": ("resourceclaims", "resourceclaims/status"),
    "scheduling.k8s.io": ("podgroups", "podgroups/status"),
    "claimctl.io": ("claimreservations", "claimreservations/status", "downgradeplans"),
}
"""By API group: what is logged with the answers, which carry the new version."""

_REFUSED = 400
_RECEIVED = "RequestReceived"
_REQUEST_SECONDS, _CLOCK_SECONDS = 75.0, 1.0
"""The longest that a request takes (a minute, by the API server's own limit), and how far the times
of two processes of one machine may be apart."""
WRITES = ("create", "update", "patch", "delete")


def policy() -> str:
    """The text of the audit policy: the writes of ``AUDITED``, and nothing else."""
    rule = {
        "level": "RequestResponse",
        "verbs": list(WRITES),
        "omitManagedFields": True,
        "resources": [
            {"group": group, "resources": list(resources)} for group, resources in AUDITED.items()
        ],
    }
    document = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [rule, {"level": "None"}],
    }
    return yaml.safe_dump(document, sort_keys=False)


class _User(msgspec.Struct):
    username: str = ""


class _Object(msgspec.Struct, rename="camel"):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None


class _Details(msgspec.Struct):
    uid: str = ""


class _Answer(msgspec.Struct):
    """An object, or a Status with details of one."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    details: _Details | None = None

    @property
    def uid(self) -> str:
        return self.details.uid if self.details is not None else self.metadata.uid

    @property
    def goes(self) -> bool:
        """Whether nothing keeps the object any more."""
        return bool(self.metadata.deletion_timestamp) and not self.metadata.finalizers


class _Status(msgspec.Struct):
    code: int = 0


class _Entry(msgspec.Struct, rename="camel"):
    verb: str
    audit_id: str = msgspec.field(name="auditID", default="")
    stage: str = ""
    user_agent: str = ""
    request_received_timestamp: datetime | None = None
    request_object: msgspec.Raw = msgspec.Raw(b"{}")
    user: _User = msgspec.field(default_factory=_User)
    object_ref: _Object = msgspec.field(default_factory=_Object)
    response_status: _Status = msgspec.field(default_factory=_Status)
    response_object: _Answer | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One request that the API server carried out, or may have.

    ``agent`` is the program that sent it, ``uid`` that of the object in the answer.
    """

    user: str
    verb: str
    subresource: str = ""
    agent: str = ""
    uid: str = ""


Address = tuple[str, str, str]
"""Plural, namespace and name."""


@dataclass(slots=True)
class AuditLog:
    """The writes in an audit log, which grows; call ``read`` to take in what is new."""

    path: Path
    _writes: defaultdict[tuple[Address, str], list[Write]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _removals: defaultdict[tuple[Address, str], list[Write]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By address and UID: what may have ended the object without an answer that has its version."""
    _begun: dict[str, tuple[Address, Write, float]] = field(default_factory=dict)
    """By audit ID: what was received, and when, and has not ended yet."""
    _offset: int = 0

    def read(self) -> None:
        """Take in the whole lines that were added since the last call."""
        try:
            with open(self.path, "rb") as log:
                log.seek(self._offset)
                data = log.read()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            # an API server that was killed may leave half a line in the middle
            try:
                self._take(decode(line, _Entry))
            except msgspec.MsgspecError:
                continue

    def _take(self, entry: _Entry) -> None:
        ref, answer = entry.object_ref, entry.response_object
        agent = entry.user_agent.partition("/")[0]
        write = Write(entry.user.username, entry.verb, ref.subresource, agent)
        if entry.stage == _RECEIVED:
            address = (ref.resource, ref.namespace, ref.name)
            received = entry.request_received_timestamp
            self._begun[entry.audit_id] = (address, write, received.timestamp() if received else 0)
            return
        self._begun.pop(entry.audit_id, None)
        if answer is None or entry.response_status.code >= _REFUSED:
            return
        address = (ref.resource, ref.namespace, ref.name or answer.metadata.name)
        self._note(address, replace(write, uid=answer.uid), answer, _asked_version(entry))

    def _note(self, address: Address, write: Write, answer: _Answer, asked: str) -> None:
        version = answer.metadata.resource_version
        if write.verb != "delete" and answer.goes:
            self._removals[address, write.uid].append(write)
        if not version:
            # the deletion of a custom resource is answered with a Status, which has no version
            if write.verb == "delete":
                self._removals[address, write.uid].append(write)
        elif asked and asked != version:
            self._writes[address, version].insert(0, write)
        elif not asked:
            self._writes[address, version].append(write)

    def writer(self, address: Address, version: str) -> Write | None:
        """Who made this version.

        A write that changes nothing is answered with it, too. One that names the version before it
        made this one for certain; of others the first is taken.
        """
        found = self._writes.get((address, version))
        return found[0] if found else None

    def remover(self, address: Address, version: str, uid: str) -> Write | None:
        """Who deleted an object.

        The answer to a DELETE has the version of the deletion, or none. The answer to the write
        that takes the last finalizer off is the object, being deleted and without finalizers.

        Args:
            version: that of the deletion.
            uid: of the object that was deleted.
        """
        deletes = [each for each in self._writes.get((address, version), ()) if _deletes(each)]
        removals = self._removals.get((address, uid), [])
        return next(iter((*deletes, *removals)), None)

    def lost(self, address: Address, at: float) -> list[Write]:
        """Requests that were under way at a time and have no end in the log.

        Args:
            at: when the object was written, in seconds of the wall clock.
        """
        plural, namespace, name = address
        return [
            write
            for (kind, space, called), write, received in self._begun.values()
            if (kind, space) == (plural, namespace)
            and called in ("", name)
            and -_CLOCK_SECONDS <= at - received <= _REQUEST_SECONDS
        ]


def _deletes(write: Write) -> bool:
    return write.verb == "delete"


def _asked_version(entry: _Entry) -> str:
    """The version that the request names; a JSON patch has no metadata."""
    try:
        asked = decode(entry.request_object, _Answer)
    except msgspec.MsgspecError:
        return ""
    return asked.metadata.resource_version
