"""Runs of ``claimctl reschedule`` in scenarios: a policy file, one plan, its execution."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import yaml

from claimctl.controlplane.nodes import FLEET_LABEL
from claimctl.kube.client import Client
from claimctl.kube.documents import DocumentClient
from claimctl.kube.retry import Backoff
from claimctl.rescheduler.policyfile.reading import checked
from claimctl.rescheduler.policyfile.translating import translated
from claimctl.rescheduler.records import Records
from claimctl.rescheduler.run import Runner
from claimctl.rescheduler.settings import RunSettings
from claimctl.rescheduler.signs import Signs
from claimctl.rescheduler.steps import Report
from claimctl.rescheduling.plan import Plan
from claimctl.rescheduling.planning import plan as planner
from claimctl.rescheduling.reasons import Reason
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS, Resource
from claimctl.wire.seams import Transport
from tests.e2e.harness import NAMESPACE, Stage

PEOPLE = "kubernetes-admin"
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


def runner(
    stage: Stage,
    policy: str,
    transport: Transport | None = None,
    settings: RunSettings = QUICK,
) -> Runner:
    """A process with a policy. On a shared cluster it moves pods on the scenario's nodes only."""
    document = yaml.safe_load(policy)
    if stage.cluster is None:
        document["nodeSelector"] = f"{FLEET_LABEL}={stage.site.nodes[0].rpartition('-')[0]}"
    client = Client(transport or stage.site.connection(PEOPLE), stage.clock)
    return Runner(
        client=client,
        clock=stage.clock,
        policy=translated(checked(document)),
        planner=planner,
        records=Records(client),
        settings=settings,
        signs=Signs(client.telemetry),
        rng=Random(0),
        stop=asyncio.Event(),
    )


async def planned(stage: Stage, policy: str) -> Plan:
    """What a dry run says."""
    return await runner(stage, policy).plan()


async def rescheduled(stage: Stage, policy: str) -> Report:
    """A run that does what the dry run before it said; no request of it failed."""
    before = await planned(stage, policy)
    report = await runner(stage, policy).run()
    assert report.plan.digest == before.digest
    assert report.failure == ""
    return report


def reasons(plan: Plan, *pods: str) -> dict[str, Reason]:
    """Why pods stay, by name; each has one reason. A generated name counts up to its last dash."""
    found: dict[str, Reason] = {}
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
    meta = {"name": pod, "namespace": NAMESPACE}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    people = stage.site.connection(PEOPLE)
    await DocumentClient(people).post(("v1", "Pod"), NAMESPACE, pod, "eviction", body)


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
