"""Policies as users of the descheduler have them: accepted, or one line for each plugin.

They are written for this test, by the plugins and args that the descheduler documents. Between them
they have every plugin of its release 0.36 and every shape of its examples.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from claimctl_reschedule.policyfile.problems import PolicyError
from claimctl_reschedule.policyfile.reading import read

DUPLICATES = "balance: RemoveDuplicates"
USAGE = "balance: LowNodeUtilization"
USAGE_ARGS = "{thresholds: {cpu: 20, pods: 20}, targetThresholds: {cpu: 50, pods: 50}}"
AGE = "deschedule: PodLifeTime"
OTHERS = {
    "PodLifeTime": ("deschedule", "{maxPodLifeTimeSeconds: 86400, states: [Pending]}"),
    "RemoveFailedPods": ("deschedule", "{reasons: [NodeAffinity], minPodLifetimeSeconds: 3600}"),
    "RemovePodsHavingTooManyRestarts": ("deschedule", "{podRestartThreshold: 100}"),
    "RemovePodsViolatingNodeAffinity": (
        "deschedule",
        "{nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}",
    ),
    "RemovePodsViolatingNodeTaints": ("deschedule", "{excludedTaints: [dedicated=special]}"),
    "RemovePodsViolatingInterPodAntiAffinity": ("deschedule", "{namespaces: {exclude: [a]}}"),
    "RemovePodsViolatingTopologySpreadConstraint": ("balance", "{constraints: [DoNotSchedule]}"),
}
"""What claimctl lacks, with the point at which it is enabled and args."""


def policy(*plugins: str, evictor: str = "{}", more: str = "", **args: str) -> str:
    """A policy that enables plugins, each written as ``point: name``."""
    lines = ["apiVersion: descheduler/v1alpha2", "kind: DeschedulerPolicy"]
    lines += [more] if more else []
    lines += ["profiles:", "- name: all", "  pluginConfig:"]
    configs = {"DefaultEvictor": evictor, **args}
    lines += [f"  - {{name: {name}, args: {given}}}" for name, given in configs.items()]
    lines += ["  plugins:"]
    for point in ("deschedule", "balance"):
        names = [each.split(": ")[1] for each in plugins if each.startswith(point)]
        lines += [f"    {point}:", "      enabled:", *(f"      - {name}" for name in names)]
    return "\n".join(lines) + "\n"


OF_2018 = (
    "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nstrategies:\n"
    "  RemoveDuplicates: {enabled: true}\n  LowNodeUtilization:\n    enabled: true\n"
    "    params: {nodeResourceUtilizationThresholds: "
    "{thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}}\n"
)
ACCEPTED = {
    "nodes to empty": policy(
        "balance: HighNodeUtilization",
        HighNodeUtilization="{thresholds: {cpu: 20, nvidia.com/gpu: 30}, numberOfNodes: 2, "
        "evictableNamespaces: {exclude: [a]}, evictionModes: [OnlyThresholdingResources]}",
    ),
    "duplicates": policy(DUPLICATES),
    "duplicates of chosen kinds": policy(
        DUPLICATES, RemoveDuplicates="{excludeOwnerKinds: [ReplicaSet], namespaces: {include: [a]}}"
    ),
    "usage": policy(USAGE, LowNodeUtilization=USAGE_ARGS),
    "usage by deviation": policy(
        USAGE,
        LowNodeUtilization="{useDeviationThresholds: true, thresholds: {cpu: 10}, "
        "targetThresholds: {cpu: 10}, numberOfNodes: 3, evictionLimits: {node: 1}}",
    ),
    "usage of an extended resource": policy(
        USAGE,
        LowNodeUtilization="{thresholds: {example.com/gpu: 1}, "
        "targetThresholds: {example.com/gpu: 3}, evictableNamespaces: {exclude: [kube-system]}}",
    ),
    "both": policy(DUPLICATES, USAGE, LowNodeUtilization=USAGE_ARGS),
    "limits and a node selector": policy(
        DUPLICATES,
        more="nodeSelector: kubernetes.io/os=linux\nmaxNoOfPodsToEvictPerNode: 5\n"
        "maxNoOfPodsToEvictPerNamespace: 50\nmaxNoOfPodsToEvictTotal: 100\n"
        "gracePeriodSeconds: 60\nevictionFailureEventNotification: true",
    ),
    "switches of the evictor": policy(
        DUPLICATES,
        evictor="{evictLocalStoragePods: true, evictDaemonSetPods: true, nodeFit: true, "
        "evictSystemCriticalPods: true, evictFailedBarePods: true, ignorePvcPods: true, "
        "ignorePodsWithoutPDB: true, minReplicas: 2, minPodAge: 1h, "
        "priorityThreshold: {name: high}, labelSelector: {matchLabels: {a: b}}}",
    ),
    "protections of the evictor": policy(
        DUPLICATES,
        evictor="{podProtections: {defaultDisabled: [PodsWithLocalStorage, FailedBarePods], "
        "extraEnabled: [PodsWithPVC, PodsWithResourceClaims], "
        "config: {PodsWithPVC: {protectedStorageClasses: [{name: fast}]}}}, "
        "noEvictionPolicy: Mandatory, priorityThreshold: {value: 1000}}",
    ),
    "nothing behind plugins, args, enabled": policy(evictor="", RemoveDuplicates=""),
    "no profiles": "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n",
    "points of the evictor": policy(DUPLICATES)
    + "    filter: {enabled: [DefaultEvictor]}\n"
    + "    preEvictionFilter: {enabled: [DefaultEvictor]}\n",
    "JSON": '{"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": []}',
    "the file of 2018": OF_2018,
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_policy_of_what_claimctl_has_is_accepted(name: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(ACCEPTED[name])
    assert read(path).skipped == ()


@pytest.mark.parametrize("name", OTHERS)
def test_a_plugin_that_claimctl_lacks_is_one_line(name: str, tmp_path: Path) -> None:
    """Although the file names it twice: with its args, and where it is enabled."""
    point, args = OTHERS[name]
    path = tmp_path / "policy.yaml"
    path.write_text(policy(f"{point}: {name}", DUPLICATES, **{name: args}))
    line = f"profiles[0].pluginConfig[1].name: claimctl has no plugin {name}"
    with pytest.raises(PolicyError) as raised:
        read(path)
    assert raised.value.problems == (f"{line} (--skip-unsupported leaves it out)",)
    checked = read(path, skip_unsupported=True)
    assert checked.skipped == (line,)
    assert [plugin.name for plugin in checked.policy.profiles[0].balance] == ["RemoveDuplicates"]


@pytest.mark.parametrize("name", OTHERS)
def test_a_strategy_of_2018_that_claimctl_lacks_is_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(OF_2018 + f"  {name}: {{enabled: true, params: {{podLifeTime: {{}}}}}}\n")
    line = f"strategies.{name}: claimctl has no plugin {name}"
    with pytest.raises(PolicyError) as raised:
        read(path)
    assert raised.value.problems == (f"{line} (--skip-unsupported leaves it out)",)
    assert read(path, skip_unsupported=True).skipped == (line,)


def test_a_policy_with_all_plugins_of_the_descheduler_has_a_line_for_each(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    enabled = (f"{point}: {name}" for name, (point, _) in OTHERS.items())
    args = {name: given for name, (_, given) in OTHERS.items()}
    path.write_text(
        policy(*enabled, DUPLICATES, USAGE, LowNodeUtilization=USAGE_ARGS, **args)
        + "- name: more\n  plugins: {deschedule: {enabled: [PodLifeTime]}}\n"
    )
    with pytest.raises(PolicyError) as raised:
        read(path)
    assert len(raised.value.problems) == len(OTHERS)
    assert len(read(path, skip_unsupported=True).skipped) == len(OTHERS)


REFUSED = {
    "real use": (
        policy(USAGE, LowNodeUtilization=USAGE_ARGS, more="metricsCollector: {enabled: true}"),
        "metricsCollector: claimctl counts requests, not real use",
    ),
    "an entry of enabled with a name of its own": (
        policy().replace("      enabled:\n", "      enabled: [{name: RemoveDuplicates}]\n", 1),
        'profiles[0].plugins.deschedule.enabled[0]: {"name": "RemoveDuplicates"}: a text',
    ),
    "a field of v1alpha2 in v1alpha1": (
        OF_2018.replace("strategies:", "gracePeriodSeconds: 3\nstrategies:"),
        "gracePeriodSeconds: ",
    ),
    "an API of the future": (
        policy().replace("v1alpha2", "v1beta1"),
        "apiVersion: 'descheduler/v1beta1' is not known: ",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_policies_are_refused_with_one_line(name: str, tmp_path: Path) -> None:
    content, line = REFUSED[name]
    path = tmp_path / "policy.yaml"
    path.write_text(content)
    with pytest.raises(PolicyError) as raised:
        read(path)
    (problem,) = raised.value.problems
    assert problem.startswith(line)
