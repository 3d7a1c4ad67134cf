"""One rule says which pods are critical."""

from __future__ import annotations

import pytest

from claimctl_reschedule.plan.facts import CRITICAL, is_critical
from claimctl_reschedule.plan.policy import CriticalPods, Policy, Profile
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.scheduling import pod


def marked(value: str, namespace: str) -> SchedulingPod:
    return pod("p", namespace=namespace, annotations={CRITICAL: value})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod("p", priority=2_000_000_000), True),
        (pod("p", priority=1_999_999_999), False),
        (pod("p", spec={"priorityClassName": "system-node-critical"}), True),
        (marked("", "kube-system"), True),
        (marked("true", "ops"), True),
        (marked("false", "kube-system"), False),
        (marked("", "team"), False),
    ],
)
def test_a_pod_is_critical_by_priority_or_by_a_mark_in_a_system_namespace(
    given: SchedulingPod, expected: bool
) -> None:
    assert is_critical(given, {"kube-system", "ops"}) is expected


def test_the_namespaces_of_critical_pods_are_protected_beside_the_systems_own() -> None:
    profile = Profile(deschedule=(CriticalPods(system_namespaces=("ops",)),))
    assert Policy(profiles=(profile,)).system_namespaces == {"kube-system", "ops"}
    assert Policy().system_namespaces == {"kube-system"}
