"""What planning reads of a policy file."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from claimctl.label_selectors import LabelSelector, LabelSelectorRequirement
from claimctl_reschedule.plan import policy
from claimctl_reschedule.plan.policy import DEFAULT_PROTECTIONS, Protection
from claimctl_reschedule.policyfile.reading import check

WHOLE = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: pool in (a,b)
maxNoOfPodsToEvictPerNode: 1
maxNoOfPodsToEvictPerNamespace: 2
maxNoOfPodsToEvictTotal: 3
gracePeriodSeconds: 4
evictionFailureEventNotification: true
profiles:
- name: gpu
  pluginConfig:
  - name: DefaultEvictor
    args:
      minReplicas: 2
      minPodAge: 1h30m
      priorityThreshold: {value: 10000}
      moveHeldClaims: WholeUnit
      noEvictionPolicy: Mandatory
      maxUnavailablePerWorkload: 2
      labelSelector:
        matchLabels: {a: b}
        matchExpressions: [{key: c, operator: Exists}]
      podProtections:
        extraEnabled: [PodsWithPVC]
        defaultDisabled: [DaemonSetPods]
        config: {PodsWithPVC: {protectedStorageClasses: [{name: fast}]}}
  - name: RemoveDuplicates
    args: {excludeOwnerKinds: [Job], namespaces: {exclude: [dev]}}
  - name: LowNodeUtilization
    args:
      thresholds: {pods: 20, deviceclass.resource.kubernetes.io/gpu: 25}
      targetThresholds: {pods: 50, deviceclass.resource.kubernetes.io/gpu: 75}
      numberOfNodes: 1
      evictableNamespaces: {exclude: [kube-system]}
      evictionLimits: {node: 5}
  - name: CriticalPods
    args: {unschedulableSeconds: 5, podScheduledTimeoutSeconds: 60, attempts: 1}
  - name: DeferredResizes
    args: {standBack: Never, deferredSeconds: 7, settleSeconds: 8}
  plugins:
    deschedule: {enabled: [CriticalPods, DeferredResizes]}
    balance: {enabled: [RemoveDuplicates, LowNodeUtilization]}
"""


def of(document: dict[str, Any]) -> policy.Policy:
    return check(document).policy


def evictor(**args: Any) -> policy.Evictor:
    document = yaml.safe_load(WHOLE)
    document["profiles"][0]["pluginConfig"][0]["args"] = args
    return of(document).profiles[0].evictor


def test_every_value_reaches_the_plan() -> None:
    gpu = "deviceclass.resource.kubernetes.io/gpu"
    assert of(yaml.safe_load(WHOLE)) == policy.Policy(
        profiles=(
            policy.Profile(
                name="gpu",
                evictor=policy.Evictor(
                    protections=(DEFAULT_PROTECTIONS - {Protection.DAEMON_SETS})
                    | {Protection.VOLUME_CLAIMS},
                    protected_storage_classes=("fast",),
                    min_replicas=2,
                    min_pod_age_seconds=5400.0,
                    priority_threshold=policy.PriorityThreshold(value=10000),
                    label_selector=LabelSelector(
                        match_labels={"a": "b"},
                        match_expressions=(LabelSelectorRequirement(key="c", operator="Exists"),),
                    ),
                    no_eviction_policy=policy.NoEvictionPolicy.MANDATORY,
                    move_held_claims=policy.MoveHeldClaims.WHOLE_UNIT,
                ),
                deschedule=(
                    policy.CriticalPods(
                        unschedulable_seconds=5, pod_scheduled_timeout_seconds=60, attempts=1
                    ),
                    policy.DeferredResizes(
                        stand_back=policy.StandBack.NEVER, deferred_seconds=7, settle_seconds=8
                    ),
                ),
                balance=(
                    policy.RemoveDuplicates(
                        exclude_owner_kinds=("Job",), namespaces=policy.Namespaces(exclude=("dev",))
                    ),
                    policy.LowNodeUtilization(
                        thresholds={"pods": 20.0, gpu: 25.0},
                        target_thresholds={"pods": 50.0, gpu: 75.0},
                        number_of_nodes=1,
                        eviction_limits=policy.EvictionLimits(node=5),
                        evictable_namespaces=policy.Namespaces(exclude=("kube-system",)),
                    ),
                ),
            ),
        ),
        node_selector=LabelSelector(
            match_expressions=(
                LabelSelectorRequirement(key="pool", operator="In", values=("a", "b")),
            )
        ),
        limits=policy.RunLimits(1, 2, 3),
        max_unavailable_per_workload=2,
        grace_period_seconds=4,
        eviction_failure_event=True,
    )


def test_a_policy_without_args_has_the_defaults_of_planning() -> None:
    assert evictor() == policy.Evictor()


@pytest.mark.parametrize(
    ("switch", "protections"),
    [
        ("evictLocalStoragePods", DEFAULT_PROTECTIONS - {Protection.LOCAL_STORAGE}),
        ("evictDaemonSetPods", DEFAULT_PROTECTIONS - {Protection.DAEMON_SETS}),
        ("evictSystemCriticalPods", DEFAULT_PROTECTIONS - {Protection.SYSTEM_CRITICAL}),
        ("evictFailedBarePods", DEFAULT_PROTECTIONS - {Protection.FAILED_BARE}),
        ("ignorePvcPods", DEFAULT_PROTECTIONS | {Protection.VOLUME_CLAIMS}),
        ("ignorePodsWithoutPDB", DEFAULT_PROTECTIONS | {Protection.WITHOUT_BUDGET}),
    ],
)
def test_the_older_switches_mean_the_same(switch: str, protections: frozenset[Protection]) -> None:
    assert evictor(**{switch: True}).protections == protections
    assert evictor(**{switch: False}).protections == DEFAULT_PROTECTIONS


def test_the_policy_in_flight_is_that_of_the_most_careful_profile() -> None:
    document = yaml.safe_load(WHOLE)
    document["profiles"].append({"name": "other"})
    assert of(document).max_unavailable_per_workload == 1
