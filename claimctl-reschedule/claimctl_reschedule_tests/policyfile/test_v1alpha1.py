"""Policy files of 2018: what is on by default, and what their parameters become."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from claimctl_reschedule.policyfile.problems import PolicyError
from claimctl_reschedule.policyfile.reading import check
from claimctl_reschedule.policyfile.v1alpha2 import CheckedPolicy

EXAMPLE_OF_2018 = """\
apiVersion: descheduler/v1alpha1
kind: DeschedulerPolicy
strategies:
  RemoveDuplicates: {enabled: true}
  LowNodeUtilization:
    enabled: true
    params:
      nodeResourceUtilizationThresholds:
        thresholds: {cpu: 20, memory: 20, pods: 20}
        targetThresholds: {cpu: 50, memory: 50, pods: 50}
"""
SAME_TODAY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: strategies
  pluginConfig:
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 20, memory: 20, pods: 20}
      targetThresholds: {cpu: 50, memory: 50, pods: 50}
  plugins:
    balance: {enabled: [RemoveDuplicates, LowNodeUtilization]}
"""


def strategies(**named: Any) -> CheckedPolicy:
    return check(
        {
            "apiVersion": "descheduler/v1alpha1",
            "kind": "DeschedulerPolicy",
            "strategies": named,
        }
    )


def on(check: CheckedPolicy) -> list[str]:
    (profile,) = check.policy.profiles
    return [strategy.name for strategy in (*profile.deschedule, *profile.balance)]


def test_the_example_of_2018_means_the_same_in_both_versions() -> None:
    old, new = (check(yaml.safe_load(text)) for text in (EXAMPLE_OF_2018, SAME_TODAY))
    assert old == new


def test_strategies_that_the_file_does_not_name_are_on() -> None:
    assert on(strategies()) == ["RemoveDuplicates"]
    assert on(strategies(RemoveDuplicates={"enabled": False})) == []


def test_low_node_utilization_without_thresholds_is_idle_and_says_so() -> None:
    (note,) = strategies().notes
    assert note == (
        "strategies.LowNodeUtilization.params.nodeResourceUtilizationThresholds: has no "
        "thresholds, so the strategy is idle"
    )
    assert strategies(LowNodeUtilization={"enabled": False}).notes == ()


def test_our_own_plugins_are_on_only_where_the_file_names_them() -> None:
    assert "CriticalPods" not in on(strategies())
    assert on(strategies(CriticalPods={"enabled": True})) == ["CriticalPods", "RemoveDuplicates"]
    assert "DeferredResizes" not in on(strategies())
    assert "DeferredResizes" in on(strategies(DeferredResizes={"enabled": True}))


def test_a_strategy_of_later_files_is_refused_as_what_it_is() -> None:
    with pytest.raises(PolicyError) as raised:
        strategies(HighNodeUtilization={"enabled": True})
    assert raised.value.problems == (
        "strategies.HighNodeUtilization: only descheduler/v1alpha2 has it here "
        "(--skip-unsupported leaves it out)",
    )


def test_a_strategy_that_claimctl_lacks_may_be_switched_off() -> None:
    assert strategies(RemovePodsViolatingNodeAffinity={"enabled": False}).skipped == ()


THRESHOLDS = "strategies.LowNodeUtilization.params.nodeResourceUtilizationThresholds"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (
            {"RemoveDuplicates": {"enable": True}},
            "strategies.RemoveDuplicates.enable: unknown field: is enabled meant?",
        ),
        (
            {"LowNodeUtilization": {"params": {"thresholds": {}}}},
            "strategies.LowNodeUtilization.params.thresholds: unknown field: known here: "
            "nodeResourceUtilizationThresholds",
        ),
        (
            {"LowNodeUtilization": {"params": {"nodeResourceUtilizationThresholds": {}}}},
            f"{THRESHOLDS}.thresholds: names no resource",
        ),
        (
            {
                "RemoveDuplicates": {
                    "params": {"nodeResourceUtilizationThresholds": {"numberOfNodes": 1}}
                }
            },
            "strategies.RemoveDuplicates.params.nodeResourceUtilizationThresholds: "
            "RemoveDuplicates has no such parameter",
        ),
    ],
)
def test_a_fault_is_one_line_with_its_path(named: dict[str, Any], expected: str) -> None:
    with pytest.raises(PolicyError) as raised:
        strategies(**named)
    assert raised.value.problems[0] == expected


def test_the_fields_of_the_whole_file_mean_what_they_mean_today() -> None:
    fields = {
        "nodeSelector": "pool=gpu",
        "maxNoOfPodsToEvictPerNode": 3,
        "maxNoOfPodsToEvictPerNamespace": 4,
    }
    switches = {"evictLocalStoragePods": True, "ignorePvcPods": True}
    old = check({**yaml.safe_load(EXAMPLE_OF_2018), **fields, **switches})
    today = yaml.safe_load(SAME_TODAY)
    config = {"name": "DefaultEvictor", "args": switches}
    today["profiles"][0]["pluginConfig"].append(config)
    assert old.policy == check({**today, **fields}).policy
    with pytest.raises(PolicyError, match="nodeSelector"):
        check({**yaml.safe_load(EXAMPLE_OF_2018), "nodeSelector": "a in b"})
