"""The CRDs as an API server takes them."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.crd.validation import validate_definition

from generate.crds import custom_resource_definitions

DEFINITIONS = custom_resource_definitions()


def schema_of(kind: str) -> dict[str, Any]:
    [found] = [each for each in DEFINITIONS if each["spec"]["names"]["kind"] == kind]
    schema: dict[str, Any] = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: str(each["metadata"]["name"]))
def test_a_server_finds_nothing_wrong(definition: dict[str, Any]) -> None:
    assert list(validate_definition(definition)) == []


def test_null_is_kept_where_it_means_never_and_nowhere_else() -> None:
    spec = schema_of("ClaimReservation")["properties"]["spec"]["properties"]
    assert [name for name, node in spec.items() if node.get("nullable")] == [
        "reallocateTimeoutSeconds"
    ]
    assert spec["reallocateTimeoutSeconds"]["default"] == 60


def test_lists_of_the_status_are_maps_so_that_writers_do_not_overwrite_each_other() -> None:
    status = schema_of("ClaimReservation")["properties"]["status"]["properties"]
    keys = {name: node.get("x-kubernetes-list-map-keys") for name, node in status.items()}
    assert {name: key for name, key in keys.items() if key} == {
        "forceDeletedPods": ["uid"],
        "conditions": ["type"],
    }


def test_conditions_are_those_of_kubernetes() -> None:
    """Required fields and patterns of metav1.Condition."""
    for kind in ("ClaimReservation", "DowngradePlan"):
        status = schema_of(kind)["properties"]["status"]["properties"]
        one = status["conditions"]["items"]
        assert set(one["required"]) == {"type", "status", "lastTransitionTime", "reason", "message"}
        assert one["properties"]["reason"]["minLength"] == 1
        assert one["properties"]["reason"]["pattern"] == "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


def test_reservations_are_found_by_their_claim_and_their_workload() -> None:
    made = next(each for each in DEFINITIONS if each["spec"]["names"]["kind"] == "ClaimReservation")
    (version,) = made["spec"]["versions"]
    assert version["selectableFields"] == [
        {"jsonPath": ".spec.resourceClaimName"},
        {"jsonPath": ".spec.workloadRef.name"},
    ]
