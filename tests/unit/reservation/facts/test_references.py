"""What managedFields tell about who wrote a reference, and when lists differ by tombstones only."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from claimctl.reservation.facts.references import only_tombstones, uids_written_by
from claimctl.wire.claims import Reference
from claimctl.wire.meta import ManagedFieldsEntry
from tests.support.builders import claim, deployment_ref, pod_ref, tomb


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


HOLD, A, B = deployment_ref(), pod_ref("a"), pod_ref("b")


@pytest.mark.parametrize(
    ("before", "after", "only"),
    [
        pytest.param((HOLD, A), (HOLD, tomb("a")), True, id="in place of the pod"),
        pytest.param((HOLD,), (HOLD, tomb("a")), True, id="a pod that is not listed"),
        pytest.param((HOLD, B, A), (HOLD, B, tomb("a"), tomb("c")), True, id="both"),
        pytest.param((HOLD, A), (HOLD, A), False, id="nothing"),
        pytest.param((HOLD, tomb("a")), (HOLD, tomb("a")), False, id="tombstones that were there"),
        pytest.param((HOLD, A, B), (HOLD, tomb("a")), False, id="an entry goes"),
        pytest.param((A,), (HOLD, tomb("a")), False, id="a hold comes"),
        pytest.param((HOLD, A), (HOLD, tomb("a"), B), False, id="a pod comes"),
        pytest.param((HOLD, tomb("a"), B), (HOLD, A, tomb("b")), False, id="a tombstone goes"),
        pytest.param((), (tomb("a"),), False, id="an empty list"),
    ],
)
def test_which_writes_add_nothing_but_tombstones(
    before: tuple[Reference, ...], after: tuple[Reference, ...], only: bool
) -> None:
    assert only_tombstones(before, after) == only
