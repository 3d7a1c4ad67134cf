"""Which differences between two answers count."""

from __future__ import annotations

from typing import Any

import pytest

from judges.conformance.compare import compare
from judges.conformance.placeholders import Bindings


def resources(group_version: str, *names: str) -> dict[str, Any]:
    listed = [{"name": name} for name in names]
    return {"kind": "APIResourceList", "groupVersion": group_version, "resources": listed}


@pytest.mark.parametrize(
    ("group_version", "fields"),
    [
        ("example.com/v1", []),
        ("apps/v1", ["body.resources[0].name", "body.resources[1].name"]),
        ("resource.k8s.io/v1", ["body.resources[0].name", "body.resources[1].name"]),
    ],
)
def test_the_order_of_resources_counts_only_in_groups_of_built_in_kinds(
    group_version: str, fields: list[str]
) -> None:
    first, other = resources(group_version, "b", "a"), resources(group_version, "a", "b")
    assert [difference.field for difference in compare("body", first, other, Bindings())] == fields


def test_another_resource_of_a_custom_group_counts() -> None:
    first, other = resources("example.com/v1", "b", "a"), resources("example.com/v1", "a", "c")
    assert compare("body", first, other, Bindings())
