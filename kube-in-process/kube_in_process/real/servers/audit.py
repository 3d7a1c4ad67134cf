"""Find out from the API server's audit log which user wrote which version of an object.

The log is in blocking mode, so the API server logs each request before it carries the request out.
If the server is killed during a request, the log has the beginning of the request but not its end.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import msgspec
import yaml
from msgspec.json import decode

AUDITED = {
    "resource.k8s.io": ("resourceclaims", "resourceclaims/status"),
    "scheduling.k8s.io": ("podgroups", "podgroups/status"),
    "claimctl.io": ("claimreservations", "claimreservations/status", "downgradeplans"),
}
"""By API group: the resources whose writes are logged with their answers. An answer has the
object's new version."""

_REFUSED = 400
_RECEIVED = "RequestReceived"
_REQUEST_SECONDS, _CLOCK_SECONDS = 75.0, 1.0
"""The longest time a request takes (the API server's limit of 60 s, and some more), and the
largest difference between the times that two processes of one machine note for one event."""
WRITES = ("create", "update", "patch", "delete")


def policy() -> str:
    """The audit policy as YAML: log the writes to ``AUDITED``, and nothing else."""
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
    """The answer to a write: an object, or a Status with the object's UID in its details."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    details: _Details | None = None

    @property
    def uid(self) -> str:
        return self.details.uid if self.details is not None else self.metadata.uid

    @property
    def goes(self) -> bool:
        """Whether the object is being deleted and has no finalizer any more."""
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
class AuditedWrite:
    """One request that the API server carried out, or may have carried out.

    ``agent`` is the program that sent the request. ``uid`` is the UID of the object in the answer.
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
    """The writes in a growing audit log. ``read`` reads the new lines."""

    path: Path
    _writes: defaultdict[tuple[Address, str], list[AuditedWrite]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _removals: defaultdict[tuple[Address, str], list[AuditedWrite]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By address and UID: the writes that may have removed the object, if the answer to the write
    does not have the version of the deletion."""
    _begun: dict[str, tuple[Address, AuditedWrite, float]] = field(default_factory=dict)
    """By audit ID: the requests that have begun and not ended, with the time of their start."""
    _offset: int = 0

    def read(self) -> None:
        """Read the complete lines that were added since the last call."""
        try:
            with open(self.path, "rb") as log:
                log.seek(self._offset)
                data = log.read()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            # a killed API server may leave an incomplete line in the middle of the log
            try:
                self._take(decode(line, type=_Entry))
            except msgspec.MsgspecError:
                continue

    def forget(self) -> None:
        """Read to the end and forget all writes: etcd goes back, and versions begin again."""
        self.read()
        for table in (self._writes, self._removals, self._begun):
            table.clear()

    def _take(self, entry: _Entry) -> None:
        ref, answer = entry.object_ref, entry.response_object
        agent = entry.user_agent.partition("/")[0]
        write = AuditedWrite(entry.user.username, entry.verb, ref.subresource, agent)
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

    def _note(self, address: Address, write: AuditedWrite, answer: _Answer, asked: str) -> None:
        version = answer.metadata.resource_version
        if write.verb != "delete" and answer.goes:
            self._removals[address, write.uid].append(write)
        if not version:
            # the answer to the deletion of a custom resource is a Status, which has no version
            if write.verb == "delete":
                self._removals[address, write.uid].append(write)
        elif asked and asked != version:
            self._writes[address, version].insert(0, write)
        elif not asked:
            self._writes[address, version].append(write)

    def writer(self, address: Address, version: str) -> AuditedWrite | None:
        """The write that made this version, or None.

        Several answers may have the same version, because the answer to a write that changes
        nothing has the present version. A write whose request named an older version made this one
        for certain. Otherwise the first write counts.
        """
        writes = self._writes.get((address, version))
        return writes[0] if writes else None

    def remover(self, address: Address, version: str, uid: str) -> AuditedWrite | None:
        """The write that removed an object, or None.

        This is a DELETE, or the write that removed the last finalizer of an object that was being
        deleted.

        Args:
            version: the version of the deletion. The answer to a DELETE has it, or has none.
            uid: the UID of the deleted object.
        """
        deletes = [write for write in self._writes.get((address, version), ()) if _deletes(write)]
        removals = self._removals.get((address, uid), [])
        return next(iter((*deletes, *removals)), None)

    def lost(self, address: Address, at: float) -> list[AuditedWrite]:
        """The requests about an object that were under way and have no end in the log.

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


def _deletes(write: AuditedWrite) -> bool:
    return write.verb == "delete"


def _asked_version(entry: _Entry) -> str:
    """The version that the request names, or '': a JSON patch has no metadata."""
    try:
        asked = decode(entry.request_object, type=_Answer)
    except msgspec.MsgspecError:
        return ""
    return asked.metadata.resource_version
