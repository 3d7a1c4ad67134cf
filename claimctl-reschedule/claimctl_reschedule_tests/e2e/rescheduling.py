"""Runs of ``claimctl reschedule`` in scenarios: a policy file, one plan, its execution."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import yaml
from kube_in_process.real.servers.nodes import FLEET_LABEL

from claimctl.kube.client import Client
from claimctl.kube.retry import Backoff
from claimctl.label_selectors import LabelSelector
from claimctl.reservation.facts.pods import unschedulable_since
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.pods import Pod
from claimctl.wire.resources import DEPLOYMENTS, PODS, RESOURCECLAIMS, Resource
from claimctl.wire.seams import Transport
from claimctl.wire.traces import TAINTED_NODES
from claimctl_demo.documents import DocumentClient
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import plan as planner
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.policyfile.reading import check
from claimctl_reschedule.run.execution import RunSettings
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule.run.signs import Signs
from claimctl_reschedule.run.steps import RunReport
from tests.e2e import manifests
from tests.e2e.harness import DEVICE_CLASS, NAMESPACE, Stage
from tests.e2e.site import CONTROLLER_NAMESPACE, PEOPLE

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", ObjectHeader)
QUICK = RunSettings(deadline=30.0, landing=20.0, poll=0.5, retry=Backoff(first=1.0, cap=4.0))
DUPLICATES = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: spread
  pluginConfig:
  - {name: DefaultEvictor, args: {}}
  plugins:
    balance: {enabled: [RemoveDuplicates]}
"""


CRITICAL = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: critical
  pluginConfig:
  - {name: DefaultEvictor, args: {}}
  - {name: CriticalPods, args: {unschedulableSeconds: 1, podScheduledTimeoutSeconds: 30}}
  plugins:
    deschedule: {enabled: [CriticalPods]}
"""
LEAVE = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: leave
  pluginConfig:
  - {name: DefaultEvictor, args: {moveHeldClaims: WholeUnit}}
  plugins:
    deschedule: {enabled: [LeaveBadNodes]}
"""
KEY = "CriticalAddonsOnly"
TOLERATES = [{"key": KEY, "operator": "Exists"}]
LOW, HIGH = "{cpu: 20, memory: 20, pods: 20}", "{cpu: 50, memory: 50, pods: 50}"
CPU = ("{cpu: 20}", "{cpu: 50}")


def utilization(thresholds: str, targets: str, evictor: str = "{}", **more: int) -> str:
    """A policy with LowNodeUtilization; the maps are YAML."""
    args = "".join(f", {key}: {value}" for key, value in more.items())
    return f"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: balance
  pluginConfig:
  - {{name: DefaultEvictor, args: {evictor}}}
  - name: LowNodeUtilization
    args: {{thresholds: {thresholds}, targetThresholds: {targets}{args}}}
  plugins:
    balance: {{enabled: [LowNodeUtilization]}}
"""


def emptying(stage: Stage, percent: int, **evictor: Any) -> str:
    """A policy with HighNodeUtilization, by the devices of the scenario."""
    own = "" if stage.cluster else f"{_record(stage).removeprefix('node-')}."
    thresholds = {f"deviceclass.resource.kubernetes.io/{own}{DEVICE_CLASS}": percent}
    config = {"DefaultEvictor": evictor, "HighNodeUtilization": {"thresholds": thresholds}}
    profile = {
        "name": "empty",
        "pluginConfig": [{"name": name, "args": args} for name, args in config.items()],
        "plugins": {"balance": {"enabled": ["HighNodeUtilization"]}},
    }
    policy = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
    return yaml.safe_dump({**policy, "profiles": [profile]})


def runner(
    stage: Stage,
    policy: str,
    transport: Transport | None = None,
    settings: RunSettings = QUICK,
) -> Runner:
    """A process with a policy. On a shared cluster it moves pods on the scenario's nodes only."""
    wanted = check(yaml.safe_load(policy)).policy
    if stage.cluster is None:
        ours = LabelSelector(match_labels={FLEET_LABEL: _record(stage)})
        wanted = replace(wanted, node_selector=ours)
    client = Client(transport or stage.site.connection(PEOPLE), stage.clock)
    client.use_version(RESOURCECLAIMS.group, stage.site.fleet.resource_api.partition("/")[2])
    return Runner(
        client=client,
        clock=stage.clock,
        policy=wanted,
        planner=planner,
        records=Records(client, _record(stage)),
        settings=settings,
        signs=Signs(client.telemetry),
        lease_namespace=stage.site.settings.get("lease_namespace", CONTROLLER_NAMESPACE),
        rng=Random(0),
        stop=asyncio.Event(),
    )


def _record(stage: Stage) -> str:
    """Scenarios that share a cluster have a record each."""
    return "default" if stage.cluster else stage.site.nodes[0].rpartition("-")[0]


async def planned(stage: Stage, policy: str) -> Plan:
    """What a dry run says."""
    return await runner(stage, policy).plan()


async def rescheduled(stage: Stage, policy: str) -> RunReport:
    """A run that does what the dry run before it said; no request of it failed."""
    before = await planned(stage, policy)
    report = await runner(stage, policy).run()
    assert report.plan.digest == before.digest
    assert report.failure == ""
    return report


def reasons(plan: Plan, *pods: str) -> dict[str, Ground]:
    """Why pods stay, by name; each has one reason. A generated name counts up to its last dash."""
    found: dict[str, Ground] = {}
    for each in plan.skipped:
        if each.pod.namespace.startswith(NAMESPACE) and (not pods or each.pod.name in pods):
            assert each.pod.name not in found, f"{each.pod.name} has two reasons"
            found[each.pod.name] = each.reason
    return found


async def closed(stage: Stage, *nodes: int, unschedulable: bool = True) -> None:
    for index in nodes:
        await stage.cordon(stage.site.nodes[index], unschedulable=unschedulable)
    await stage.clock.sleep(2)  # a controller writes the taint of a cordon, and removes it


async def evict(stage: Stage, pod: str) -> None:
    """Evict a pod without any knowledge, as other tools do."""
    space = (await stage.client.get(PODS, pod, NAMESPACE)).metadata.namespace
    meta = {"name": pod, "namespace": space}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    people = stage.site.connection(PEOPLE)
    await DocumentClient(people).post(("v1", "Pod"), space, pod, "eviction", body)


async def taints(stage: Stage, node: int = 0) -> list[tuple[str, str]]:
    """Key and value of the taints of a node."""
    found = await stage.client.get(TAINTED_NODES, stage.site.nodes[node])
    return [(str(each["key"]), str(each.get("value") or "")) for each in found.spec.taints]


async def places(stage: Stage, app: str = "") -> dict[str, int]:
    """How many running pods each node has."""
    running = [pod for pod in await stage.running() if not app or app_of(pod) == app]
    count = Counter(pod.spec.node_name for pod in running)
    return {node: count.get(node, 0) for node in stage.site.nodes}


def app_of(pod: Pod) -> str:
    return (pod.metadata.labels or {}).get("app", "")


async def names(stage: Stage) -> dict[str, str]:
    """The node of each pod by name, '' for a pod without one."""
    found = (await stage.client.list(PODS, NAMESPACE)).items
    return {pod.metadata.name: pod.spec.node_name for pod in found}


def workload(name: str, replicas: int, **given: Any) -> dict[str, Any]:
    """A Deployment. ``requests``: of its container; ``claim``: a named claim; ``spec``: more."""
    resources: dict[str, Any] = {"requests": given.get("requests", {})}
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "main:1"}]}
    if "claim" in given or "template" in given:
        source = "resourceClaimName" if "claim" in given else "resourceClaimTemplateName"
        uses = given.get("claim") or given["template"]
        spec["resourceClaims"] = [{"name": "gpu", source: uses}]
        resources["claims"] = [{"name": "gpu"}]
    spec["containers"][0]["resources"] = resources
    labels = {"app": name, **given.get("labels", {})}
    meta = {"labels": labels, "annotations": given.get("annotations", {})}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": meta, "spec": {**spec, **given.get("spec", {})}},
        },
    }


def budget(name: str, **spec: Any) -> dict[str, Any]:
    """A PodDisruptionBudget for the pods of the Deployment ``name``."""
    selector = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": selector, **spec},
    }


EXAMPLE = utilization(LOW, HIGH)


# What is on the cluster before a run


async def crowded(stage: Stage, replicas: int = 6, **given: Any) -> None:
    """All pods of a Deployment run on the first node; then the others open again."""
    others = range(1, len(stage.site.nodes))
    await closed(stage, *others)
    await stage.create(DEPLOYMENTS, workload("web", replicas, **given))
    await stage.until_running(replicas)
    await closed(stage, *others, unschedulable=False)


async def filled(stage: Stage, replicas: int = 3) -> None:
    """Pods that nobody may move use much of the first node."""
    local = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
    filler = workload("filler", replicas, requests={"cpu": "10"}, spec=local)
    await stage.create(DEPLOYMENTS, filler)


async def held(stage: Stage, replicas: int) -> None:
    """On the first node: pods that share a held claim, beside the pods that stay."""
    await stage.started()
    await closed(stage, 1, 2)
    await filled(stage)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = workload("train", replicas, claim="slice", requests={"cpu": "4"})
    body["metadata"]["annotations"] = {"claimctl.io/reserve": "slice"}
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(replicas + 3)
    await stage.until(lambda: is_held(stage), "the claim is held")
    await closed(stage, 1, 2, unschedulable=False)


async def is_held(stage: Stage) -> bool:
    return any(each.startswith("deployments/") for each in await stage.references())


def devices(name: str, count: int) -> dict[str, Any]:
    """A claim for several devices."""
    body = manifests.claim(name)
    exactly = {"deviceClassName": DEVICE_CLASS, "count": count}
    body["spec"]["devices"]["requests"] = [{"name": "gpu", "exactly": exactly}]
    return body


async def occupied(stage: Stage, pods: int = 6, **spec: Any) -> None:
    """Pods of low priority share the devices of the first node by a held claim."""
    await stage.started()
    await closed(stage, 1)
    await stage.create(RESOURCECLAIMS, devices("slice", 2))
    body = workload("train", pods, claim="slice", spec=spec)
    body["metadata"]["annotations"] = {"claimctl.io/reserve": "slice"}
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(pods)
    await stage.until(lambda: is_held(stage), "the claim is held")
    await closed(stage, 1, unschedulable=False)


async def critical(stage: Stage, count: int = 2, name: str = "vital", **spec: Any) -> None:
    """A critical pod that wants devices of the first node has waited for some seconds."""
    await stage.create(RESOURCECLAIMS, devices(name, count))
    container: dict[str, Any] = {"name": "main", "image": "x"}
    if count:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    wanted = {
        "containers": [container],
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/hostname": stage.site.nodes[0]},
        "tolerations": TOLERATES,
        **spec,
    }
    await stage.create(PODS, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": wanted})
    await stage.until(lambda: _waits(stage, name), f"{name} has no place")
    await stage.clock.sleep(5)


async def _waits(stage: Stage, name: str) -> bool:
    return unschedulable_since(await stage.client.get(PODS, name, NAMESPACE)) is not None
