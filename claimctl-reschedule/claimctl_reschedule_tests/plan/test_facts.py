"""Each fact for which a pod is chosen, and that other changes do not matter."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from claimctl.wire.base import from_plain
from claimctl_reschedule.plan.facts import facts_of, is_ready, reference
from claimctl_reschedule.plan.plan import Facts
from claimctl_reschedule.shapes.scheduling import SchedulingPod

POD: dict[str, Any] = {
    "metadata": {
        "name": "web",
        "labels": {"b": "2", "a": "1"},
        "annotations": {"karpenter.sh/do-not-disrupt": "true", "team": "x"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "r-1", "controller": True}],
    },
    "spec": {
        "priority": 7,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Ki"}}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
    },
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def facts(pod: dict[str, Any]) -> Facts:
    return facts_of(from_plain(pod, SchedulingPod))


def test_the_facts_of_a_pod() -> None:
    assert facts(POD) == Facts(
        phase="Running",
        ready=True,
        owner="r-1",
        priority=7,
        requests=(("cpu", "1000"), ("memory", "1024")),
        claims=("slice",),
        labels=(("a", "1"), ("b", "2")),
        annotations=(("karpenter.sh/do-not-disrupt", "true"),),
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("status", "phase"), "Failed"),
        (("status", "conditions"), []),
        (("metadata", "ownerReferences"), []),
        (("metadata", "labels"), {"a": "1"}),
        (("metadata", "annotations"), {}),
        (("spec", "priority"), 8),
        (("spec", "containers"), []),
        (("spec", "resourceClaims"), []),
    ],
)
def test_a_change_that_matters_changes_the_facts(path: tuple[str, str], value: Any) -> None:
    changed = deepcopy(POD)
    changed[path[0]][path[1]] = value
    assert facts(changed) != facts(POD)


def test_a_change_that_does_not_matter_changes_nothing() -> None:
    changed = deepcopy(POD)
    changed["metadata"]["annotations"]["team"] = "y"
    changed["metadata"]["resourceVersion"] = "2"
    assert facts(changed) == facts(POD)


def test_a_request_that_is_no_number_does_not_stop_the_comparison() -> None:
    changed = deepcopy(POD)
    changed["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    assert facts(changed).requests == ()


def test_a_reference_names_the_pod_and_its_node() -> None:
    bound = {"metadata": {"namespace": "team", "name": "p", "uid": "u"}, "spec": {"nodeName": "a"}}
    found = reference(from_plain(bound, SchedulingPod))
    assert (str(found), found.uid, found.node) == ("team/p", "u", "a")


def test_a_pod_without_the_condition_is_not_ready() -> None:
    assert is_ready(from_plain(POD, SchedulingPod))
    for conditions in ([], [{"type": "Ready", "status": "False"}]):
        changed = POD | {"status": {"conditions": conditions}}
        assert not is_ready(from_plain(changed, SchedulingPod))
