"""Who wrote which version of an object: read from the API server's audit log.

The log is in blocking mode, so a request is in it before its client has the answer. What the server
was killed in the middle of may be missing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import yaml

AUDITED = {
    "resource.k8s.io": ("resourceclaims", "resourceclaims/status"),
    "scheduling.k8s.io": ("podgroups", "podgroups/status"),
    "claimctl.io": ("claimreservations", "claimreservations/status", "downgradeplans"),
}
"""By API group: what is logged with the answers, which carry the new version."""

_REFUSED = 400
WRITES = ("create", "update", "patch", "delete")


def policy() -> str:
    """The text of the audit policy: the writes of ``AUDITED``, and nothing else."""
    rule = {
        "level": "RequestResponse",
        "verbs": list(WRITES),
        "omitStages": ["RequestReceived"],
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
    resource_version: str = ""


class _Answer(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Status(msgspec.Struct):
    code: int = 0


class _Entry(msgspec.Struct, rename="camel"):
    verb: str
    user: _User = msgspec.field(default_factory=_User)
    object_ref: _Object = msgspec.field(default_factory=_Object)
    response_status: _Status = msgspec.field(default_factory=_Status)
    response_object: _Answer | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One request that the API server carried out."""

    user: str
    verb: str
    subresource: str = ""


Address = tuple[str, str, str]
"""Plural, namespace and name."""


@dataclass(slots=True)
class AuditLog:
    """The writes in an audit log, which grows; call ``read`` to take in what is new."""

    path: Path
    _writes: defaultdict[tuple[Address, str], list[Write]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _offset: int = 0
    _decoder: msgspec.json.Decoder[_Entry] = field(
        default_factory=lambda: msgspec.json.Decoder(_Entry)
    )

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
                self._take(self._decoder.decode(line))
            except msgspec.MsgspecError:
                continue

    def _take(self, entry: _Entry) -> None:
        answer, ref = entry.response_object, entry.object_ref
        if answer is None or entry.response_status.code >= _REFUSED:
            return
        version = answer.metadata.resource_version
        # the deletion of a custom resource is answered with a Status, which has no version
        if not version and entry.verb != "delete":
            return
        address = (ref.resource, ref.namespace, ref.name or answer.metadata.name)
        write = Write(entry.user.username, entry.verb, ref.subresource)
        self._writes[address, version].append(write)

    def writer(self, address: Address, version: str) -> Write | None:
        """Who made this version. Writes that changed nothing answer with it, too, but later."""
        found = self._writes.get((address, version))
        return found[0] if found else None

    def remover(self, address: Address, version: str, last_version: str) -> Write | None:
        """Who deleted an object.

        The answer to a DELETE has the version of the deletion, or none. The answer to the write
        that takes the last finalizer off still has the version before.

        Args:
            version: that of the deletion.
            last_version: the one before.
        """
        for known in (version, ""):
            deletes = [w for w in self._writes.get((address, known), ()) if w.verb == "delete"]
            if deletes:
                return deletes[-1]
        before = self._writes.get((address, last_version), ())
        return before[-1] if len(before) > 1 else None
