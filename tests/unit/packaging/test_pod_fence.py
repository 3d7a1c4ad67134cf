"""The admission policy around the rescheduler's right to patch pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.packaging.policies import refusals

FILE = Path(__file__).parents[3] / "deploy" / "rescheduler" / "base" / "pod-fence.yaml"
POLICY, BINDING = yaml.safe_load_all(FILE.read_text())
OURS, THEIRS = {"name": "claimctl.io/brake"}, {"name": "example.com/other"}
CONTAINER = {"name": "c", "image": "x"}


def pod(*gates: dict[str, str], **spec: Any) -> dict[str, Any]:
    gated = {"schedulingGates": list(gates)} if gates else {}
    return {
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [CONTAINER], **gated, **spec},
    }


def refused(before: Any, after: Any) -> list[str]:
    """The messages of the validations that fail."""
    return refusals(POLICY, {"object": after, "oldObject": before})


@pytest.mark.parametrize(
    ("before", "after"),
    [([OURS], []), ([OURS, THEIRS], [THEIRS]), ([THEIRS, OURS], [THEIRS]), ([THEIRS], [THEIRS])],
)
def test_its_own_gate_goes(before: list[Any], after: list[Any]) -> None:
    assert refused(pod(*before), pod(*after)) == []


@pytest.mark.parametrize(
    ("before", "after"), [([THEIRS], []), ([OURS, THEIRS], []), ([THEIRS], [OURS])]
)
def test_other_gates_stay(before: list[Any], after: list[Any]) -> None:
    assert refused(pod(*before), pod(*after)) == [
        "the rescheduler removes only its own scheduling gate"
    ]


def test_nothing_else_of_a_pod_changes() -> None:
    before = pod(OURS)
    spec: dict[str, Any]
    for spec in (
        {"containers": [CONTAINER | {"image": "y"}]},
        {"affinity": {"nodeAffinity": {}}},
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"activeDeadlineSeconds": 5},
    ):
        assert refused(before, pod(**spec)) == [
            "the rescheduler changes nothing of a pod's spec but its scheduling gate"
        ]
    named = pod()
    named["metadata"]["labels"] = {}
    assert refused(before, named) == [
        "the rescheduler changes no labels, annotations or other metadata of pods"
    ]


def test_the_policy_refuses_and_does_not_only_warn() -> None:
    assert BINDING["spec"]["policyName"] == POLICY["metadata"]["name"]
    assert BINDING["spec"]["validationActions"] == ["Deny"]
    assert POLICY["spec"]["failurePolicy"] == "Fail"
