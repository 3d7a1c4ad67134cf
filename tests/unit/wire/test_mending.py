"""In Kubernetes' JSON null means absent, and so does a time that cannot be computed with."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

import claimctl.controller
import claimctl.kube
import claimctl.reservation
import claimctl.wire
import claimctl_reschedule
from claimctl.kube.codec import decode_page
from claimctl.wire.base import Wire, decode
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import ClaimReservation, ClaimReservationSpec
from claimctl.wire.resources import RESOURCECLAIMS
from claimctl.wire.times import MOST_SECONDS
from tests.support import extremes

for package in (
    claimctl.wire,
    claimctl.kube,
    claimctl.controller,
    claimctl.reservation,
    claimctl_reschedule,
):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)

MEANINGFUL = {(ClaimReservationSpec, "reallocateTimeoutSeconds")}
"""The schema says ``nullable`` and has a default: null is a value of its own, 'never'."""

Path = tuple[str | int, ...]


def _below(type_: Any) -> Iterator[Any]:
    for each in type_.__subclasses__():
        if each.__module__.startswith("claimctl."):
            yield each
        yield from _below(each)


# a null among the objects of a list is no object: it is counted as one that cannot be read;
# a judged workload is made by claimctl, and no server sends one
NO_OBJECTS = {"_Page", "_RawPage", "JudgedWorkload"}
STRUCTS = sorted(
    {each for each in _below(Wire) if each.__name__.partition("[")[0] not in NO_OBJECTS},
    key=lambda each: f"{each.__module__}.{each.__qualname__}",
)


def present(shape: inspect.Type) -> inspect.Type:
    if isinstance(shape, inspect.Metadata):
        return present(shape.type)
    if isinstance(shape, inspect.UnionType):
        return present(next(t for t in shape.types if not isinstance(t, inspect.NoneType)))
    return shape


def sample(shape: inspect.Type) -> Any:
    """A value of the type in which everything is set, to something other than its default."""
    match present(shape):
        case inspect.StructType() as struct:
            return {each.encode_name: sample(each.type) for each in struct.fields}
        case inspect.VarTupleType(item_type=item):
            return [sample(item), sample(item)]
        case inspect.DictType(value_type=value):
            return {"one": sample(value), "other": sample(value)}
        case inspect.DateTimeType():
            return "2026-01-02T03:04:05Z"
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 7
        case inspect.RawType():
            return {"f:status": {"text": "<&\u00e9"}}
    return "text"


def places(shape: inspect.Type, here: Path = ()) -> Iterator[Path]:
    """Where a null may stand in ``sample(shape)``: optional fields, entries of lists and maps."""
    match present(shape):
        case inspect.StructType() as struct:
            for each in struct.fields:
                at = (*here, each.encode_name)
                if not each.required and (struct.cls, each.encode_name) not in MEANINGFUL:
                    yield at
                yield from places(each.type, at)
        case inspect.VarTupleType(item_type=item):
            for index in (0, 1):
                yield (*here, index)
                yield from places(item, (*here, index))
        case inspect.DictType(value_type=value):
            for key in ("one", "other"):
                yield (*here, key)
                yield from places(value, (*here, key))


def with_nulls(value: Any, at: set[Path], here: Path = ()) -> Any:
    if here in at:
        return None
    if isinstance(value, dict):
        return {key: with_nulls(each, at, (*here, key)) for key, each in value.items()}
    if isinstance(value, list):
        return [with_nulls(each, at, (*here, index)) for index, each in enumerate(value)]
    return value


def without(value: Any, at: set[Path], here: Path = ()) -> Any:
    if isinstance(value, dict):
        return {
            key: without(each, at, (*here, key))
            for key, each in value.items()
            if (*here, key) not in at
        }
    if isinstance(value, list):
        return [
            without(each, at, (*here, index))
            for index, each in enumerate(value)
            if (*here, index) not in at
        ]
    return value


def same_as_absent(type_: type[Wire], at: set[Path]) -> None:
    whole = sample(inspect.type_info(type_))
    nulls = json.dumps(with_nulls(whole, at), ensure_ascii=False).encode()
    absent = json.dumps(without(whole, at), ensure_ascii=False).encode()
    assert decode(nulls, type_) == decode(absent, type_), sorted(at, key=str)


@pytest.mark.parametrize("type_", STRUCTS, ids=lambda each: each.__qualname__)
def test_a_null_in_any_one_place_is_as_if_nothing_stood_there(type_: type[Wire]) -> None:
    for place in places(inspect.type_info(type_)):
        same_as_absent(type_, {place})


@given(st.data())
def test_nulls_in_many_places_are_as_if_nothing_stood_there(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from([each for each in STRUCTS if each.__struct_fields__]))
    found = list(places(inspect.type_info(type_)))
    same_as_absent(type_, data.draw(st.sets(st.sampled_from(found))) if found else set())


def test_every_kind_is_among_what_is_tried() -> None:
    names = {each.__qualname__ for each in STRUCTS}
    assert {"Pod", "ResourceClaim", "Lease", "Event", "Status", "DowngradePlan"} <= names
    assert {"ListMeta", "ObjectHeader", "ApiGroup", "ApiResourceList", "ServerVersion"} <= names


def test_never_to_reallocate_is_said_by_null() -> None:
    """Also where another null in the object has to go first."""
    body = {"spec": {"reallocateTimeoutSeconds": None, "idleTimeoutSeconds": None}}
    spec = decode(json.dumps(body), ClaimReservation).spec
    assert (spec.reallocate_timeout_seconds, spec.idle_timeout_seconds) == (None, 60)
    assert ClaimReservation().spec.reallocate_timeout_seconds == 60


CLAIM = sample(inspect.type_info(ResourceClaim))


def as_1_32_serves_it() -> dict[str, Any]:
    claim: dict[str, Any] = deepcopy(CLAIM)
    for result in claim["status"]["allocation"]["devices"]["results"]:
        result["adminAccess"] = None
    return claim


def test_a_list_is_read_whose_objects_and_envelope_have_nulls() -> None:
    meta = {"resourceVersion": "7", "continue": None, "remainingItemCount": None}
    body = {"metadata": meta, "items": [CLAIM, as_1_32_serves_it()]}
    page = decode_page(RESOURCECLAIMS, json.dumps(body).encode())
    assert page.unreadable == ()
    assert (page.resource_version, page.continue_token) == ("7", "")
    told = [each.status.allocation.devices.results for each in page.items]  # type: ignore[union-attr]  # the sample has an allocation
    assert [[one.admin_access for one in each or ()] for each in told] == [[True] * 2, [False] * 2]


def test_what_is_wrong_beside_a_null_is_named_all_the_same() -> None:
    claim = {"spec": None, "status": {"reservedFor": [None, {"uid": 5}]}}
    with pytest.raises(msgspec.ValidationError, match=r"Expected `str`.*reservedFor\[0\]\.uid"):
        decode(json.dumps(claim), ResourceClaim)


def put(value: Any, at: Path, new: Any) -> Any:
    if not at:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = put(value[at[0]], at[1:], new)
    return copy


def values(shape: inspect.Type, of: type[inspect.Type], here: Path = ()) -> Iterator[Path]:
    """Where ``sample(shape)`` has values of a type."""
    match present(shape):
        case inspect.StructType() as struct:
            for each in struct.fields:
                yield from values(each.type, of, (*here, each.encode_name))
        case inspect.VarTupleType(item_type=item):
            yield from values(item, of, (*here, 0))
        case inspect.DictType(value_type=value):
            yield from values(value, of, (*here, "one"))
        case other if isinstance(other, of):
            yield here


def having(of: type[inspect.Type]) -> list[type[Wire]]:
    """The structs whose sample has a value of the type."""
    return [each for each in STRUCTS if any(values(inspect.type_info(each), of))]


@pytest.mark.parametrize("type_", having(inspect.DateTimeType), ids=lambda each: each.__qualname__)
def test_a_time_that_cannot_be_computed_with_is_as_if_nothing_stood_there(
    type_: type[Wire],
) -> None:
    shape = inspect.type_info(type_)
    whole = sample(shape)
    optional = set(places(shape))
    for place in values(shape, inspect.DateTimeType):
        absent = decode(json.dumps(without(whole, {place})), type_) if place in optional else None
        for time in extremes.TIMES:
            body = json.dumps(put(whole, place, time))
            if place[-1] == "deletionTimestamp":
                deleted = put(whole, place, "1970-01-01T00:00:00Z")
                assert decode(body, type_) == decode(json.dumps(deleted), type_)
            elif absent is not None:
                assert decode(body, type_) == absent, (place, time)
            else:
                with pytest.raises(msgspec.ValidationError):
                    decode(body, type_)


def test_what_is_no_time_at_all_is_refused() -> None:
    wrongs: list[Any] = ["yesterday", "", 5, {}, ["2026-01-01T00:00:00Z"]]
    for wrong in wrongs:
        body = {"metadata": {"name": "a", "creationTimestamp": wrong}}
        with pytest.raises(msgspec.ValidationError, match="creationTimestamp"):
            decode(json.dumps(body), ResourceClaim)


@pytest.mark.parametrize("type_", having(inspect.IntType), ids=lambda each: each.__qualname__)
def test_a_number_of_seconds_beyond_its_limits_counts_as_the_limit(type_: type[Wire]) -> None:
    shape = inspect.type_info(type_)
    whole = sample(shape)
    for place in values(shape, inspect.IntType):
        if not str(place[-1]).endswith("Seconds"):
            continue
        for number in extremes.NUMBERS:
            known = min(max(number, 0), MOST_SECONDS)
            body, same = (json.dumps(put(whole, place, value)) for value in (number, known))
            assert decode(body, type_) == decode(same, type_), (place, number)
