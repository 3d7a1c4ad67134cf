"""Random workloads: every kind of owner, with the wishes, claims and protections of their pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from claimctl_reschedule_labs.clusters.names import (
    BATCH,
    CLASSES,
    EXTRA,
    HOST,
    PRIORITIES,
    SPACES,
    ZONE,
    Body,
    chance,
    claim_spec,
)

FOREVER = "1000000"
"""Seconds that a pod of a Job runs: longer than any run of a test."""
KINDS = ("deployments",) * 5 + ("replicasets", "statefulsets", "statefulsets", "jobs")


@dataclass(frozen=True, slots=True)
class Workload:
    """The objects of one owner in the order in which they are created.

    ``replicas``: set once the first pod runs; None if they are in the object already.
    """

    name: str
    namespace: str
    objects: tuple[tuple[str, Body], ...]
    plural: str = ""
    replicas: int | None = None

    @property
    def pods(self) -> int:
        """How many pods it has in the end."""
        spec = self.objects[-1][1]["spec"]
        return int(self.replicas or spec.get("replicas") or spec.get("parallelism") or 0)


@dataclass(frozen=True, slots=True)
class Wave:
    """Workloads that come while some nodes are cordoned, so that the pods are spread unevenly."""

    closed: tuple[int, ...]
    workloads: tuple[Workload, ...]


@dataclass(slots=True)
class Pods:
    """The template of a workload's pods, while it is made."""

    name: str
    rng: Random
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    spec: Body = field(default_factory=dict)

    def template(self) -> Body:
        meta = {"labels": {"app": self.name, **self.labels}, "annotations": self.annotations}
        return {"metadata": meta, "spec": self.spec}

    @property
    def own(self) -> Body:
        """A selector of these pods."""
        return {"matchLabels": {"app": self.name}}


def workload(rng: Random, number: int, others: list[str]) -> Workload:
    """A workload of a random kind. ``others``: the apps that are there already."""
    plural = rng.choice(KINDS)
    name, namespace = f"app-{number}", rng.choice(SPACES)
    replicas = rng.choice((1, 2, 3, 4, 5, 6, 8))
    pods = Pods(name, rng)
    _containers(pods)
    _wishes(pods, others)
    _protections(pods)
    objects, annotations, shared = _claims(pods, namespace, plural)
    meta = {"name": name, "namespace": namespace, "annotations": annotations}
    owner = {"metadata": meta, "spec": _owner(pods, plural, replicas)}
    # the scheduler of 1.36 may bind pods of a PodGroup to wrong nodes while their claim has no
    # devices yet (kubernetes/kubernetes#140087): one pod comes first
    grows = shared and plural != "jobs" and replicas > 1
    if grows:
        owner["spec"]["replicas"] = 1
    made = (*objects, (plural, owner))
    return Workload(name, namespace, made, plural, replicas if grows else None)


def _owner(pods: Pods, plural: str, replicas: int) -> Body:
    if plural == "jobs":
        pods.spec["restartPolicy"] = "Never"
        pods.annotations["kube-in-process/run-seconds"] = FOREVER
        spec: Body = {"parallelism": replicas, "completions": replicas}
        if chance(pods.rng, 0.3):
            spec["completionMode"] = "Indexed"
        if chance(pods.rng, 0.3):
            spec["podReplacementPolicy"] = "Failed"
        return {**spec, "template": pods.template()}
    spec = {"replicas": replicas, "selector": pods.own, "template": pods.template()}
    if plural == "statefulsets":
        spec["serviceName"] = pods.name
        spec["podManagementPolicy"] = pods.rng.choice(("Parallel", "OrderedReady"))
    return spec


def _containers(pods: Pods) -> None:
    """One or two containers of a random quality of service."""
    rng = pods.rng
    requests: dict[str, str] = {}
    if chance(rng, 0.8):
        requests["cpu"] = rng.choice(("100m", "500m", "1", "2"))
    if chance(rng, 0.6):
        requests["memory"] = rng.choice(("128Mi", "512Mi", "1Gi", "2Gi"))
    if chance(rng, 0.08):
        requests[EXTRA] = "1"
    resources: Body = {"requests": requests}
    if len(requests) > 1 and chance(rng, 0.3):
        resources["limits"] = dict(requests)
    elif EXTRA in requests:
        resources["limits"] = {EXTRA: "1"}
    main: Body = {"name": "main", "image": f"{pods.name}:1", "resources": resources}
    if chance(rng, 0.05):
        main["ports"] = [{"containerPort": 80, "hostPort": 8000 + rng.randint(0, 2)}]
    containers = [main]
    if chance(rng, 0.15):
        containers.append({"name": "side", "image": "side:1"})
    pods.spec["containers"] = containers
    if chance(rng, 0.3):
        pods.spec["priorityClassName"] = rng.choice(tuple(PRIORITIES))


def _wishes(pods: Pods, others: list[str]) -> None:
    """Which nodes the pods want, and which other pods near them."""
    rng = pods.rng
    if chance(rng, 0.08):
        pods.spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
    if chance(rng, 0.2):
        pods.spec["tolerations"] = [{"key": BATCH, "operator": "Exists"}]
    affinity: Body = {}
    if chance(rng, 0.2):
        affinity["nodeAffinity"] = _node_affinity(rng)
    if chance(rng, 0.15):
        affinity["podAntiAffinity"] = _near(rng, pods.own)
    if others and chance(rng, 0.1):
        other = {"matchLabels": {"app": rng.choice(others)}}
        affinity["podAffinity"] = {_PREFERRED: [_weighted(rng, other)]}
    if others and chance(rng, 0.05):
        other = {"matchLabels": {"app": rng.choice(others)}}
        affinity.setdefault("podAntiAffinity", {})[_PREFERRED] = [_weighted(rng, other)]
    if affinity:
        pods.spec["affinity"] = affinity
    if chance(rng, 0.25):
        constraint = {
            "maxSkew": rng.choice((1, 1, 2)),
            "topologyKey": rng.choice((HOST, ZONE)),
            "whenUnsatisfiable": rng.choice(("ScheduleAnyway",) * 2 + ("DoNotSchedule",)),
            "labelSelector": pods.own,
        }
        pods.spec["topologySpreadConstraints"] = [constraint]


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _node_affinity(rng: Random) -> Body:
    zones = rng.sample(("a", "b", "c"), rng.choice((1, 2)))
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]}
    if chance(rng, 0.3):
        return {_REQUIRED: {"nodeSelectorTerms": [term]}}
    return {_PREFERRED: [{"weight": rng.choice((1, 10, 50, 100)), "preference": term}]}


def _near(rng: Random, selector: Body) -> Body:
    if chance(rng, 0.25):
        return {_REQUIRED: [{"topologyKey": HOST, "labelSelector": selector}]}
    return {_PREFERRED: [_weighted(rng, selector)]}


def _weighted(rng: Random, selector: Body) -> Body:
    term = {"topologyKey": rng.choice((HOST, ZONE)), "labelSelector": selector}
    return {"weight": rng.choice((1, 10, 100)), "podAffinityTerm": term}


def _protections(pods: Pods) -> None:
    """What keeps a tool from evicting the pods, or from doing so early."""
    rng = pods.rng
    if chance(rng, 0.05):
        pods.spec["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    if chance(rng, 0.03):
        pods.annotations["karpenter.sh/do-not-disrupt"] = "true"
    if chance(rng, 0.03):
        pods.annotations["descheduler.alpha.kubernetes.io/prefer-no-eviction"] = ""
    if chance(rng, 0.03):
        pods.spec["priorityClassName"] = "system-cluster-critical"


def _claims(
    pods: Pods, namespace: str, plural: str
) -> tuple[list[tuple[str, Body]], dict[str, str], bool]:
    """Give the pods claims or not; the objects, the owner's annotations, and whether they share."""
    rng, objects, entries = pods.rng, list[tuple[str, Body]](), list[Body]()
    annotations: dict[str, str] = {}
    way = rng.choice(("none",) * 5 + ("own", "own", "held", "held", "shared", "both"))
    if way in ("own", "both"):
        meta = {"name": f"{pods.name}-each", "namespace": namespace}
        objects.append(
            ("resourceclaimtemplates", {"metadata": meta, "spec": {"spec": claim_spec(rng)}})
        )
        entries.append({"name": "each", "resourceClaimTemplateName": meta["name"]})
    if way in ("held", "shared", "both"):
        meta = {"name": f"{pods.name}-slice", "namespace": namespace}
        objects.append(("resourceclaims", {"metadata": meta, "spec": claim_spec(rng)}))
        entries.append({"name": "slice", "resourceClaimName": meta["name"]})
        if way != "shared":
            annotations["claimctl.io/reserve"] = meta["name"]
    if entries:
        pods.spec["resourceClaims"] = entries
        names = [{"name": entry["name"]} for entry in entries]
        pods.spec["containers"][0]["resources"]["claims"] = names
    return objects, annotations, way in ("held", "shared", "both")


def hungry(rng: Random, number: int, pods: int, *, held: bool) -> Workload:
    """A Deployment of low priority that uses devices of one class, for critical pods to take."""
    name, namespace = f"hungry-{number}", SPACES[0]
    spec = claim_spec(rng, CLASSES[0])
    meta = {"name": f"{name}-claim", "namespace": namespace}
    wanted: tuple[str, Body] = (
        "resourceclaimtemplates",
        {"metadata": meta, "spec": {"spec": spec}},
    )
    key = "resourceClaimTemplateName"
    if held:
        wanted, key = ("resourceclaims", {"metadata": meta, "spec": spec}), "resourceClaimName"
    container = {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "gpu", key: meta["name"]}],
        },
    }
    owner: Body = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"claimctl.io/reserve": meta["name"]} if held else {},
        },
        "spec": {
            "replicas": 1 if held else pods,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }
    objects = (wanted, ("deployments", owner))
    return Workload(name, namespace, objects, "deployments", pods if held else None)


def budget(rng: Random, app: str, namespace: str, number: int) -> Body:
    """A PodDisruptionBudget for the pods of an app."""
    field_ = rng.choice(("minAvailable", "maxUnavailable"))
    value: Any = rng.choice((0, 1, 1, 1, 2, 2, "50%", "50%"))
    spec: Body = {"selector": {"matchLabels": {"app": app}}, field_: value}
    if chance(rng, 0.2):
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    return {"metadata": {"name": f"{app}-{number}", "namespace": namespace}, "spec": spec}
