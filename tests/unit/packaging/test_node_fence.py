"""The admission policy around the rescheduler's right to patch nodes."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import cel
import pytest
import yaml

FILE = Path(__file__).parents[3] / "deploy" / "rescheduler" / "node-fence.yaml"
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


def evaluated(expression: str, names: dict[str, Any]) -> Any:
    context = cel.Context()
    context.update(names)
    return cel.compile(expression).execute(context)


def refused(before: Any, after: Any, operation: str = "UPDATE") -> list[str]:
    """The messages of the validations that fail."""
    spec = POLICY["spec"]
    names: dict[str, Any] = {
        "object": after,
        "oldObject": before,
        "request": {"operation": operation, "userInfo": {"username": ACCOUNT}},
    }
    assert all(evaluated(each["expression"], names) for each in spec["matchConditions"])
    variables: dict[str, Any] = {}
    for each in spec["variables"]:
        variables[each["name"]] = evaluated(each["expression"], {**names, "variables": variables})
    told = {**names, "variables": variables}
    return [
        each["message"] for each in spec["validations"] if not evaluated(each["expression"], told)
    ]


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


def test_nothing_else_of_a_node_changes() -> None:
    before = node()
    cordoned = node(spec={"unschedulable": True})
    labelled = deepcopy(before)
    labelled["metadata"]["labels"] = {"a": "c"}
    assert refused(before, cordoned) == ["the rescheduler does not cordon nodes"]
    assert refused(before, labelled) == [
        "the rescheduler changes no labels, annotations or finalizers of nodes"
    ]


@pytest.mark.parametrize(
    ("before", "after", "operation"), [(node(), None, "DELETE"), (None, node(), "CREATE")]
)
def test_nodes_are_neither_made_nor_deleted(before: Any, after: Any, operation: str) -> None:
    assert refused(before, after, operation) == [
        "the rescheduler neither creates nor deletes nodes"
    ]


def test_the_policy_refuses_and_does_not_only_warn() -> None:
    assert BINDING["spec"]["policyName"] == POLICY["metadata"]["name"]
    assert BINDING["spec"]["validationActions"] == ["Deny"]
    assert POLICY["spec"]["failurePolicy"] == "Fail"
