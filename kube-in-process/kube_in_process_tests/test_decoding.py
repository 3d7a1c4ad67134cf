"""Bodies are checked for types and freed of unknown fields."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.kinds.builtin import builtin_kinds
from kube_in_process.kinds.decoding import Decoder
from kube_in_process.kinds.kind import Kind
from kube_in_process.options import Features
from kube_in_process.schema.registry import Schemas

FEATURES = Features()
KINDS = builtin_kinds(FEATURES)
WIDGET = Kind("example.com", ("v1",), "widgets", "Widget", custom=True)


def decoder() -> Decoder:
    schemas = Schemas(lambda: FEATURES)
    spec = {"type": "object", "properties": {"size": {"type": "string"}}}
    schemas.add_custom(
        "example.com", "v1", "Widget", {"type": "object", "properties": {"spec": spec}}
    )
    return Decoder(schemas)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"devices": {"requests": "x"}},
            "string into Go struct field DeviceClaim.spec.devices.requests of type "
            "[]v1.DeviceRequest",
        ),
        (
            {"devices": {"requests": [{"name": 1}]}},
            "number into Go struct field DeviceRequest.spec.devices.requests.name of type string",
        ),
        (
            {"devices": []},
            "array into Go struct field ResourceClaimSpec.spec.devices of type v1.DeviceClaim",
        ),
    ],
)
def test_a_wrong_type_is_told_in_the_words_of_the_server(spec: Any, problem: str) -> None:
    with pytest.raises(StatusError) as refused:
        decoder().clean(KINDS.named("resourceclaims"), "v1", {"metadata": {}, "spec": spec})
    assert refused.value.body()["message"] == (
        f'ResourceClaim in version "v1" cannot be handled as a ResourceClaim: '
        f"json: cannot unmarshal {problem}"
    )


def test_a_null_among_quantities_is_zero() -> None:
    node = {"metadata": {}, "status": {"capacity": {"cpu": None, "memory": "1Ki"}}}
    decoder().clean(KINDS.named("nodes"), "v1", node)
    assert node["status"]["capacity"] == {"cpu": "0", "memory": "1Ki"}


def test_unknown_fields_are_dropped_and_named() -> None:
    claim = {"metadata": {"name": "a"}, "spec": {"reservedFor": {}, "devices": {}}}
    named = decoder().clean(KINDS.named("resourceclaims"), "v1", claim)
    assert named == ['unknown field "spec.reservedFor"']
    devices = {"requests": None}
    assert claim == {"metadata": {"name": "a"}, "spec": {"devices": devices}, "status": {}}


def test_of_a_custom_kind_metadata_comes_first_and_types_are_left_to_validation() -> None:
    widget = {"extra": 1, "spec": {"zzz": 1, "size": 5}, "metadata": {"name": "w", "odd": 1}}
    assert decoder().clean(WIDGET, "v1", widget) == [
        'unknown field "metadata.odd"',
        'unknown field "extra"',
        'unknown field "spec.zzz"',
    ]
    assert widget == {"spec": {"size": 5}, "metadata": {"name": "w"}}


def test_numbers_and_strings_are_both_taken_where_kubernetes_takes_both() -> None:
    service = {"metadata": {}, "spec": {"ports": [{"port": 1, "targetPort": "http"}]}}
    assert decoder().clean(KINDS.named("services"), "v1", service) == []
