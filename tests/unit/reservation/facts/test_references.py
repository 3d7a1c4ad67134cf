"""What managedFields tell about who wrote a reference."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from claimctl.reservation.facts.references import uids_written_by
from claimctl.wire.meta import ManagedFieldsEntry
from tests.support.builders import claim


def entry(manager: str, subresource: str, fields: bytes) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(
        manager=manager,
        operation="Update",
        subresource=subresource,
        fields_v1=msgspec.Raw(fields),
    )


HELD = b'{"f:status":{"f:reservedFor":{".":{},"k:{\\"uid\\":\\"u-1\\"}":{".":{},"f:uid":{}}}}}'
POD = b'{"f:status":{"f:allocation":{},"f:reservedFor":{"k:{\\"uid\\":\\"u-2\\"}":{".":{}}}}}'


def test_only_entries_of_the_manager_on_the_status_count() -> None:
    base = claim()
    fields = (
        entry("claimctl", "status", HELD),
        entry("kube-scheduler", "status", POD),
        entry("claimctl", "", POD),
        entry("claimctl", "status", b'{"f:status":{"f:devices":{}}}'),
        entry("claimctl", "status", b"not json"),
    )
    managed = replace(base, metadata=replace(base.metadata, managed_fields=fields))
    assert uids_written_by(managed) == {"u-1"}
    assert uids_written_by(managed, "kube-scheduler") == {"u-2"}
    assert uids_written_by(base) == frozenset()
