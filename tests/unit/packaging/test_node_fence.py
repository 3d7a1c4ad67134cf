"""The admission policy around the rescheduler's right to patch nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.packaging.policies import matches, refusals

FILE = Path(__file__).parents[3] / "deploy" / "rescheduler" / "base" / "node-fence.yaml"
POLICY, BINDING = yaml.safe_load_all(FILE.read_text())
ACCOUNT = "system:serviceaccount:claimctl-system:claimctl-rescheduler"
THEIRS = {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}
OURS = {"key": "CriticalAddonsOnly", "value": "claimctl-p-1", "effect": "NoSchedule"}
MOVING = {"key": "claimctl.io/moving", "value": "claimctl-p-2", "effect": "NoSchedule"}


def node(*taints: dict[str, str], **parts: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "n1", "labels": {"a": "b"}, **parts.get("metadata", {})},
        "spec": {"taints": list(taints), **parts.get("spec", {})},
    }


def refused(before: Any, after: Any, operation: str = "UPDATE", subresource: str = "") -> list[str]:
    """The messages of the validations that fail."""
    names: dict[str, Any] = {
        "object": after,
        "oldObject": before,
        "request": {
            "operation": operation,
            "subResource": subresource,
            "userInfo": {"username": ACCOUNT},
        },
    }
    return refusals(POLICY, names)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [OURS]),
        ([THEIRS], [THEIRS, MOVING]),
        ([THEIRS, OURS], [THEIRS]),
        ([OURS, THEIRS, MOVING], [THEIRS]),
        ([THEIRS], [THEIRS]),
    ],
)
def test_its_own_taints_come_and_go(before: list[Any], after: list[Any]) -> None:
    assert refused(node(*before), node(*after)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [([THEIRS], []), ([], [THEIRS]), ([THEIRS], [OURS]), ([THEIRS], [{**THEIRS, "value": "x"}])],
)
def test_other_taints_stay(before: list[Any], after: list[Any]) -> None:
    assert refused(node(*before), node(*after)) == ["the rescheduler changes only its own taints"]


SPEC = "the rescheduler changes nothing of a node's spec but its own taints"
METADATA = "the rescheduler changes no labels, annotations or other metadata of nodes"
WRITES = "the rescheduler neither creates nor deletes nodes, and writes no status of theirs"


@pytest.mark.parametrize(
    "field",
    [
        {"unschedulable": True},
        {"podCIDR": "10.0.0.0/24"},
        {"podCIDRs": ["10.0.0.0/24"]},
        {"providerID": "cloud://1"},
        {"configSource": {"configMap": {"name": "x"}}},
        {"externalID": "x"},
        {"aFieldOfALaterKubernetes": {"x": 1}},
    ],
)
def test_no_other_field_of_the_spec_is_added_changed_or_removed(field: dict[str, Any]) -> None:
    other = dict.fromkeys(field, "another")
    assert refused(node(OURS), node(spec=field)) == [SPEC]
    assert refused(node(spec=field), node(spec=other)) == [SPEC]
    assert refused(node(spec=field), node(OURS)) == [SPEC]
    assert refused(node(spec=field), node(OURS, spec=field)) == []


@pytest.mark.parametrize(
    "field", [{"labels": {"a": "c"}}, {"annotations": {"x": "y"}}, {"finalizers": ["x.io/y"]}]
)
def test_no_metadata_is_added_changed_or_removed(field: dict[str, Any]) -> None:
    assert refused(node(), node(metadata=field)) == [METADATA]
    assert refused(node(metadata=field), node()) == [METADATA]


def test_what_every_write_changes_may_change() -> None:
    before = {"generation": 1, "resourceVersion": "1", "managedFields": []}
    after = {"generation": 2, "resourceVersion": "2", "managedFields": [{"manager": "x"}]}
    assert refused(node(metadata=before), node(OURS, metadata=after)) == []


@pytest.mark.parametrize(
    ("before", "after", "operation", "subresource"),
    [
        (node(), None, "DELETE", ""),
        (None, node(), "CREATE", ""),
        (node(), node(), "UPDATE", "status"),
        (None, {"path": "/pods"}, "CONNECT", "proxy"),
    ],
)
def test_nodes_are_neither_made_nor_deleted_and_their_status_stays(
    before: Any, after: Any, operation: str, subresource: str
) -> None:
    assert refused(before, after, operation, subresource) == [WRITES]


@pytest.mark.parametrize(
    ("user", "concerned"),
    [
        (ACCOUNT, True),
        ("system:serviceaccount:gpus:claimctl-rescheduler", True),
        ("system:serviceaccount:claimctl-system:claimctl-controller", False),
        ("system:node:claimctl-rescheduler", False),
        ("jane", False),
    ],
)
def test_it_concerns_the_account_in_every_namespace_and_nobody_else(
    user: str, concerned: bool
) -> None:
    assert matches(POLICY, {"request": {"userInfo": {"username": user}}}) is concerned


def test_the_policy_refuses_and_does_not_only_warn() -> None:
    assert BINDING["spec"]["policyName"] == POLICY["metadata"]["name"]
    assert BINDING["spec"]["validationActions"] == ["Deny"]
    assert POLICY["spec"]["failurePolicy"] == "Fail"
