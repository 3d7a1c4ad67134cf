"""Policy files that are wrong: one line for each fault, with its path."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from claimctl_reschedule.plan.policy import (
    CriticalPods,
    LowNodeUtilization,
    RemoveDuplicates,
    RunLimits,
)
from claimctl_reschedule.policyfile.problems import PolicyError
from claimctl_reschedule.policyfile.reading import check

HEADER = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
EVICTOR = "profiles[0].pluginConfig[0].args"
USAGE = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}


def policy(profile: dict[str, Any], /, **more: Any) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(HEADER)
    return {**document, "profiles": [{"name": "one", **profile}], **more}


def with_args(name: str, **args: Any) -> dict[str, Any]:
    return policy({"pluginConfig": [{"name": name, "args": args}]})


def enabling(point: str, *names: str, **more: Any) -> dict[str, Any]:
    return policy({"plugins": {point: {"enabled": list(names)}}, **more})


def evictor(**args: Any) -> dict[str, Any]:
    return with_args("DefaultEvictor", **args)


def usage(**args: Any) -> dict[str, Any]:
    return with_args("LowNodeUtilization", **{**USAGE, **args})


def problems(document: dict[str, Any], *, skip: bool = False) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        check(document, skip_unsupported=skip)
    return list(raised.value.problems)


FAULTS: list[tuple[dict[str, Any], str]] = [
    (
        policy({"pluginConfig": [{"name": "DefaultEvictor", "nodeFit": True}]}),
        "profiles[0].pluginConfig[0].nodeFit: belongs below args",
    ),
    (policy({}, nodefit=True), "nodefit: unknown field: known here: apiVersion, kind, profiles, "),
    (policy({}, profile=[]), "profile: unknown field: is profiles meant?"),
    (evictor(nodefit=True), f"{EVICTOR}.nodefit: unknown field: is nodeFit meant?"),
    (evictor(nodeFit="yes"), f'{EVICTOR}.nodeFit: "yes": true or false is expected'),
    (evictor(minReplicas=-1), f"{EVICTOR}.minReplicas: -1 is not allowed: at least 0 is expected"),
    (evictor(minReplicas=1.5), f"{EVICTOR}.minReplicas: 1.5: a whole number is expected"),
    (evictor(minReplicas=True), f"{EVICTOR}.minReplicas: true: a whole number is expected"),
    (
        evictor(moveHeldClaims="Always"),
        f'{EVICTOR}.moveHeldClaims: "Always" is not known: Never or WholeUnit is expected',
    ),
    (
        evictor(evictDaemonSetPods=True, podProtections={"defaultDisabled": ["DaemonSetPods"]}),
        f"{EVICTOR}.evictDaemonSetPods: excludes podProtections: write DaemonSetPods into "
        "podProtections.defaultDisabled instead",
    ),
    (
        evictor(podProtections={"extraEnabled": ["PodsWithPVCs"]}),
        f"{EVICTOR}.podProtections.extraEnabled[0]: 'PodsWithPVCs' is not known: one of "
        "PodsWithPVC, PodsWithoutPDB, PodsWithResourceClaims is expected",
    ),
    (
        evictor(podProtections={"defaultDisabled": ["DaemonSetPods", "DaemonSetPods"]}),
        f"{EVICTOR}.podProtections.defaultDisabled[1]: DaemonSetPods is repeated",
    ),
    (
        evictor(
            podProtections={
                "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}}
            }
        ),
        f"{EVICTOR}.podProtections.config.PodsWithPVC: has no effect: add PodsWithPVC to ",
    ),
    (
        evictor(priorityThreshold={"value": 1, "name": "high"}),
        f"{EVICTOR}.priorityThreshold: either value or name is expected",
    ),
    (evictor(minPodAge="1 day"), f"{EVICTOR}.minPodAge: '1 day' is not a duration like 30s, "),
    (
        evictor(nodeSelector="a=b"),
        f"{EVICTOR}.nodeSelector: is not read: write the nodeSelector of the whole policy",
    ),
    (
        evictor(labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        f"{EVICTOR}.labelSelector.matchExpressions[0].values: In needs values",
    ),
    (
        evictor(labelSelector={"matchExpressions": [{"key": "a", "operator": "Has"}]}),
        f'{EVICTOR}.labelSelector.matchExpressions[0].operator: "Has" is not known: ',
    ),
    (
        usage(thresholds={"cpu": 120}),
        f"{EVICTOR}.thresholds.cpu: 120 is not allowed: at most 100 is expected",
    ),
    (
        usage(targetThresholds={"cpu": -1}),
        f"{EVICTOR}.targetThresholds.cpu: -1 is not allowed: at least 0 is expected",
    ),
    (usage(thresholds={"cpu": "20"}), f'{EVICTOR}.thresholds.cpu: "20": a number is expected'),
    (
        usage(thresholds={"cpu": 20, "memory": 20}),
        f"{EVICTOR}.targetThresholds: lacks memory: thresholds and targetThresholds name the same ",
    ),
    (
        usage(thresholds={"cpu": 60}),
        f"{EVICTOR}.thresholds.cpu: 60 is above targetThresholds, which has 50",
    ),
    (usage(thresholds={}, targetThresholds={}), f"{EVICTOR}.thresholds: names no resource"),
    (
        usage(evictableNamespaces={"include": ["ml"]}),
        f"{EVICTOR}.evictableNamespaces.include: only exclude is read here",
    ),
    (
        with_args("RemoveDuplicates", namespaces={"include": ["a"], "exclude": ["b"]}),
        f"{EVICTOR}.namespaces: include and exclude exclude each other",
    ),
    (
        with_args("DeferredResizes", standBack="Sometimes"),
        f'{EVICTOR}.standBack: "Sometimes" is not known: Auto, Always or Never is expected',
    ),
    (
        with_args("DeferredResizes", seconds=5),
        f"{EVICTOR}.seconds: unknown field: is settleSeconds meant?",
    ),
    (
        with_args("CriticalPods", systemNamespaces=[]),
        f"{EVICTOR}.systemNamespaces: names no namespace",
    ),
    (
        with_args("UnplaceablePods", budget={"refusals": 1}),
        f"{EVICTOR}.budget.refusals: ",
    ),
    (with_args("UnplaceablePods", refusals=3), f"{EVICTOR}.refusals: "),
    (with_args("UnplaceablePods", avoid="Never"), f"{EVICTOR}.avoid: "),
    (
        with_args("UnplaceablePods", avoid="Taint", brake=True),
        f"{EVICTOR}.brake: needs avoid: Auto or Admission, since Taint makes no pod wait",
    ),
    (
        enabling("deschedule", "RemoveDuplicates"),
        "profiles[0].plugins.deschedule.enabled[0]: RemoveDuplicates belongs below plugins.balance",
    ),
    (
        enabling("balance", "RemoveDuplicates", "RemoveDuplicates"),
        "profiles[0].plugins.balance.enabled[1]: RemoveDuplicates is named twice",
    ),
    (
        enabling("balance", "LowNodeUtilization"),
        "profiles[0].plugins.balance.enabled[0]: LowNodeUtilization needs thresholds and ",
    ),
    (
        enabling("balance", "HighNodeUtilization"),
        "profiles[0].plugins.balance.enabled[0]: HighNodeUtilization needs thresholds in ",
    ),
    (
        enabling(
            "balance",
            "HighNodeUtilization",
            "LowNodeUtilization",
            pluginConfig=[
                {"name": "HighNodeUtilization", "args": {"thresholds": {"cpu": 20}}},
                {"name": "LowNodeUtilization", "args": USAGE},
            ],
        ),
        "profiles[0].plugins.balance.enabled: LowNodeUtilization and HighNodeUtilization ",
    ),
    (
        with_args("HighNodeUtilization", thresholds={"cpu": 20}, targetThresholds={"cpu": 50}),
        f"{EVICTOR}.targetThresholds: unknown field: is thresholds meant?",
    ),
    (with_args("HighNodeUtilization"), f"{EVICTOR}.thresholds: names no resource"),
    (
        with_args("HighNodeUtilization", thresholds={"cpu": 120}),
        f"{EVICTOR}.thresholds.cpu: 120 is not allowed: at most 100 is expected",
    ),
    (
        with_args("HighNodeUtilization", thresholds={"cpu": 1}, evictionModes=["All"]),
        f'{EVICTOR}.evictionModes[0]: "All" is not known: OnlyThresholdingResources is expected',
    ),
    (
        with_args(
            "HighNodeUtilization", thresholds={"a": 1}, evictableNamespaces={"include": [""]}
        ),
        f"{EVICTOR}.evictableNamespaces.include: only exclude is read here",
    ),
    (
        policy({"plugins": {"filter": {"disabled": ["DefaultEvictor"]}}}),
        "profiles[0].plugins.filter.disabled[0]: DefaultEvictor has the protections of pods: ",
    ),
    (
        policy({"pluginConfig": [{"name": "RemoveDuplicates"}] * 2}),
        "profiles[0].pluginConfig[1].name: RemoveDuplicates is configured twice",
    ),
    (policy({"pluginConfig": [{"args": {}}]}), "profiles[0].pluginConfig[0].name: is missing"),
    (
        policy({}, apiVersion="descheduler/v1beta1"),
        "apiVersion: 'descheduler/v1beta1' is not known: descheduler/v1alpha2 or "
        "descheduler/v1alpha1 is expected",
    ),
    (policy({}, kind="Policy"), "kind: 'Policy' is not known: DeschedulerPolicy is expected"),
    (policy({}, apiVersion=["v1"]), "apiVersion: ['v1'] is not known: "),
    (policy({}, profiles={}), "profiles: {}: a list is expected"),
    (policy({}, nodeSelector="!"), "nodeSelector: '!' is not a label requirement"),
]


@pytest.mark.parametrize(("document", "expected"), FAULTS, ids=[text[:70] for _, text in FAULTS])
def test_a_fault_is_one_line_with_its_path(document: dict[str, Any], expected: str) -> None:
    found = problems(document)
    assert found[0].startswith(expected)
    assert not any("\n" in line for line in found)


def test_all_faults_of_a_profile_are_told_at_once() -> None:
    found = problems(
        policy(
            {
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": {"minPodAge": "x", "nodeSelector": "a b"}},
                    {"name": "RemoveDuplicates", "args": {"kinds": []}},
                ],
            }
        )
    )
    assert [line.partition(":")[0] for line in found] == [
        f"{EVICTOR}.nodeSelector",
        f"{EVICTOR}.minPodAge",
        "profiles[0].pluginConfig[1].args.kinds",
    ]


UNSUPPORTED: list[tuple[dict[str, Any], str]] = [
    (
        enabling("balance", "RemoveDuplicate"),
        "profiles[0].plugins.balance.enabled[0]: claimctl has no plugin RemoveDuplicate: is "
        "RemoveDuplicates meant?",
    ),
    (
        enabling("deschedule", "PodLifeTime"),
        "profiles[0].plugins.deschedule.enabled[0]: claimctl has no plugin PodLifeTime",
    ),
    (
        with_args("PodLifeTime", maxPodLifeTimeSeconds=5),
        "profiles[0].pluginConfig[0].name: claimctl has no plugin PodLifeTime",
    ),
    (
        usage(metricsUtilization={"source": "KubernetesMetrics"}),
        f"{EVICTOR}.metricsUtilization: claimctl counts requests, not real use",
    ),
    (
        policy({}, metricsProviders=[{"source": "KubernetesMetrics"}]),
        "metricsProviders: claimctl counts requests, not real use",
    ),
    (
        policy({"plugins": {"sort": {"enabled": ["MySort"]}}}),
        "profiles[0].plugins.sort.enabled[0]: claimctl has no plugin MySort",
    ),
    (
        {
            "apiVersion": "descheduler/v1alpha1",
            "kind": "DeschedulerPolicy",
            "strategies": {"RemovePodsViolatingNodeAffinity": {"enabled": True}},
        },
        "strategies.RemovePodsViolatingNodeAffinity: claimctl has no plugin "
        "RemovePodsViolatingNodeAffinity",
    ),
]


@pytest.mark.parametrize(("document", "line"), UNSUPPORTED)
def test_what_claimctl_lacks_is_refused_by_name_or_skipped(
    document: dict[str, Any], line: str
) -> None:
    assert problems(document) == [f"{line} (--skip-unsupported leaves it out)"]
    assert check(document, skip_unsupported=True).skipped == (line,)


def test_a_fault_is_not_skipped_beside_what_claimctl_lacks() -> None:
    document = policy(
        {"pluginConfig": [{"name": "PodLifeTime"}, {"name": "DefaultEvictor", "nodeFit": 1}]}
    )
    assert problems(document, skip=True) == [
        "profiles[0].pluginConfig[1].nodeFit: belongs below args"
    ]


def test_the_order_of_plugins_is_that_of_the_file() -> None:
    document = policy(
        {
            "pluginConfig": [{"name": "LowNodeUtilization", "args": USAGE}],
            "plugins": {
                "balance": {"enabled": ["LowNodeUtilization", "RemoveDuplicates"]},
                "deschedule": {"enabled": ["CriticalPods"]},
                "filter": {"enabled": ["DefaultEvictor"]},
            },
        }
    )
    (profile,) = check(document).policy.profiles
    usage = LowNodeUtilization(thresholds={"cpu": 20.0}, target_thresholds={"cpu": 50.0})
    assert profile.balance == (usage, RemoveDuplicates())
    assert profile.deschedule == (CriticalPods(),)


def test_refused_pods_are_the_task_of_one_profile() -> None:
    profile = {"plugins": {"deschedule": {"enabled": ["UnplaceablePods"]}}}
    document = policy({})
    document["profiles"] = [{"name": "one", **profile}, {"name": "two", **profile}]
    assert problems(document) == [
        "profiles[1].plugins.deschedule: UnplaceablePods is enabled in another profile already"
    ]


def test_a_policy_without_profiles_says_that_nothing_is_done() -> None:
    document = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
    assert check(document).notes == ("the policy has no profile, so nothing is done",)


def test_limits_are_read() -> None:
    limited = check(
        policy(
            {},
            maxNoOfPodsToEvictPerNode=1,
            maxNoOfPodsToEvictPerNamespace=2,
            maxNoOfPodsToEvictTotal=3,
            gracePeriodSeconds=4,
            nodeSelector="pool=gpu",
        )
    ).policy
    assert limited.limits == RunLimits(1, 2, 3)
    assert limited.grace_period_seconds == 4
    assert limited.node_selector is not None


def test_args_may_name_their_type() -> None:
    document = evictor(apiVersion="descheduler/v1alpha2", kind="DefaultEvictorArgs", nodeFit=False)
    assert not check(document).policy.profiles[0].evictor.node_fit


def test_every_alias_of_the_kinds_of_pods_is_spelled_as_the_descheduler_does() -> None:
    """camelCase by rule would say ignorePodsWithoutPdb and podsWithPvc."""
    check(evictor(ignorePodsWithoutPDB=True, ignorePvcPods=True))
    pvc = {"extraEnabled": ["PodsWithPVC"], "config": {"PodsWithPVC": {}}}
    check(evictor(podProtections=pvc))


def test_duplicates_need_no_args() -> None:
    (profile,) = check(enabling("balance", "RemoveDuplicates")).policy.profiles
    assert profile.balance == (RemoveDuplicates(),)
