"""Whatever others have chosen, a status that claimctl writes is one that its schema takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kube_in_process.crd.structural import validate
from msgspec.inspect import (
    BoolType,
    DateTimeType,
    IntType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)
from msgspec.structs import replace

from claimctl.wire.claims import Reference
from claimctl.wire.fitted import fitted, status_body
from claimctl.wire.limits import MAX_ITEMS, TEN_YEARS
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import (
    ClaimReservationStatus,
    DowngradePlanStatus,
    ForceDeletedPod,
)
from claimctl.wire.times import EARLIEST, LATEST
from claimctl.wire.workload_kinds import WorkloadKindStatus
from claimctl_reschedule.shapes.records import RescheduleRecordStatus
from tests.support.crds import definitions

STATUSES: dict[str, type[msgspec.Struct]] = {
    "claimreservations": ClaimReservationStatus,
    "downgradeplans": DowngradePlanStatus,
    "reschedulerecords": RescheduleRecordStatus,
    "workloadkinds": WorkloadKindStatus,
}
NUMBERS = st.sampled_from([0, 1, -1, TEN_YEARS + 1, 2**31 - 1, 2**31, 2**63 - 1, -(2**63)])
TEXTS = st.one_of(
    st.sampled_from(["", "x", "True", "Ready", "a\n", " ", "é" * 63, "\x00\x1b[2J", "line\u2028"]),
    st.sampled_from([64, 65, 128, 129, 253, 254, 317, 1025, 4097, 32769]).map("x".__mul__),
)
TIMES = st.sampled_from(
    [
        EARLIEST,
        LATEST - timedelta(microseconds=1),
        datetime(2026, 1, 1, tzinfo=UTC),
    ]
)


def extreme(kind: Type) -> st.SearchStrategy[Any]:
    """Any value of the type that others may have chosen."""
    match kind:
        case Metadata(type=inner):
            return extreme(inner)
        case UnionType(types=(inner, NoneType())):
            return st.none() | extreme(inner)
        case VarTupleType(item_type=item):
            return st.lists(extreme(item), max_size=2).map(tuple)
        case StructType(cls=struct, fields=fields):
            return st.builds(struct, **{field.name: extreme(field.type) for field in fields})
        case IntType():
            return NUMBERS
        case StrType():
            return TEXTS
        case DateTimeType():
            return TIMES
        case BoolType():
            return st.booleans()
    raise TypeError(kind)


def schema_of(plural: str) -> dict[str, Any]:
    """The schema of a kind's status in the CRD that is shipped."""
    [crd] = [crd for crd in definitions() if crd["spec"]["names"]["plural"] == plural]
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    status: dict[str, Any] = schema["properties"]["status"]
    return status


@pytest.mark.parametrize("plural", STATUSES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_status_fits_the_schema_that_is_shipped(plural: str, data: st.DataObject) -> None:
    status = data.draw(extreme(type_info(STATUSES[plural])))
    fit = fitted(status)
    assert validate(schema_of(plural), json.loads(json.dumps(status_body(fit)))) == []
    assert fitted(fit) is fit


def reference(**changes: str) -> Reference:
    return replace(Reference(resource="jobs", name="a", uid="u"), **changes)


def test_numbers_become_the_nearest_and_texts_are_shortened() -> None:
    condition = Condition(
        type="Ready",
        status="True",
        reason="Ready",
        message="m" * 40_000,
        last_transition_time=datetime.now(UTC),
    )
    pod = ForceDeletedPod(uid="a", termination_grace_period_seconds=2**63 - 1)
    status = fitted(ClaimReservationStatus(force_deleted_pods=(pod,), conditions=(condition,)))
    assert status.force_deleted_pods[0].termination_grace_period_seconds == TEN_YEARS
    assert len(status.conditions[0].message) == 32_768
    assert status.conditions[0].message.endswith("m...")


def test_no_name_is_cut_as_it_would_be_that_of_another_object() -> None:
    long = "x" * 254
    pod = ForceDeletedPod(uid="a", name=long, boot_id=long)
    status = ClaimReservationStatus(
        claim_uid=long,
        pod_group_name=long,
        reserved_for=reference(name=long),
        force_deleted_pods=(pod, replace(pod, uid=long)),
    )
    assert fitted(status) == ClaimReservationStatus(force_deleted_pods=(ForceDeletedPod(uid="a"),))


def test_a_list_loses_what_is_too_much() -> None:
    nodes = tuple(map(str, range(MAX_ITEMS + 1)))
    assert fitted(ClaimReservationStatus(nodes=nodes)).nodes == nodes[:-1]


def test_a_list_of_distinct_items_keeps_the_first_of_each() -> None:
    first, again = ForceDeletedPod(uid="a", name="first"), ForceDeletedPod(uid="a", name="again")
    status = ClaimReservationStatus(nodes=("n", "n"), force_deleted_pods=(first, again))
    assert fitted(status) == ClaimReservationStatus(nodes=("n",), force_deleted_pods=(first,))
