"""The cases. In each, a correct scheduler has one choice only, or the choice is not shown."""

from __future__ import annotations

from typing import Any

from judges.conformance.scheduling.stage import DAEMON_SET, PRIORITIES, Case, CaseStage, pod_spec

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
CLOSED = [{"key": "closed", "value": "x", "effect": "NoSchedule"}]
WEB = {"app": "web"}
SELECT_WEB = {"matchLabels": WEB}


async def insufficient(stage: CaseStage) -> None:
    """Each resource that lacks is named, for each node; other filters come first."""
    await stage.node("a", cpu="2", memory="2Gi", more={"example.com/card": "1"})
    await stage.node("b", cpu="8", memory="1Gi")
    await stage.node("c", cpu="16", memory="64Gi", unschedulable=True)
    await stage.node("d", cpu="16", memory="64Gi", taints=CLOSED)
    await stage.pod("cpu", cpu="9")
    await stage.pod("both", cpu="9", memory="4Gi")
    await stage.pod("memory", memory="4Gi")
    await stage.pod("card", more={"example.com/card": "2"})
    await stage.pod("storage", more={"ephemeral-storage": "20Gi"})
    await stage.pod("nowhere", spec={"nodeSelector": {"disk": "fast"}})
    await stage.rest("refused")


async def full_of_pods(stage: CaseStage) -> None:
    """A node takes no more pods than it says; an ended pod does not count."""
    await stage.node("a", pods="2")
    for plain in ("one", "two", "three"):
        await stage.pod(plain)
        await stage.rest(f"after {plain}")
    await stage.delete("one", force=True)
    await stage.rest("one is gone")


async def room_comes(stage: CaseStage) -> None:
    """A pod that waits for room gets it when another pod is gone, or the node grows."""
    await stage.node("a", cpu="2")
    await stage.pod("first", cpu="1500m")
    await stage.rest("first")
    await stage.pod("second", cpu="1")
    await stage.rest("second waits")
    await stage.delete("first")
    await stage.rest("first terminates")
    await stage.end_terminating()
    await stage.rest("first is gone")
    await stage.pod("third", cpu="2")
    await stage.rest("third waits")
    await stage.allocatable("a", {"cpu": "4", "memory": "8Gi", "pods": "20"})
    await stage.rest("the node grew")


async def init_containers(stage: CaseStage) -> None:
    """An init container counts if it needs more than the containers; a sidecar beside them."""
    await stage.node("a", cpu="4")
    await stage.node("b", cpu="4", unschedulable=True)
    first = {"name": "first", "image": "x", "resources": {"requests": {"cpu": "3"}}}
    beside = {**first, "name": "beside", "restartPolicy": "Always"}
    await stage.pod("init", cpu="2", spec={"initContainers": [first]})
    await stage.rest("init")
    await stage.pod("small", cpu="1")
    await stage.rest("fits beside")
    await stage.pod("none", cpu="100m")
    await stage.rest("nothing left")
    await stage.patch_node("b", {"unschedulable": None})
    await stage.pod("sidecar", cpu="2", spec={"initContainers": [beside]})
    await stage.rest("a sidecar counts in full")


async def least_allocated(stage: CaseStage) -> None:
    """The emptier node is chosen."""
    for plain in ("a", "b", "c"):
        await stage.node(plain, cpu="4", memory="8Gi")
    await stage.rest("nodes")
    for plain, used in (("a", "3"), ("b", "1"), ("c", "2")):
        await stage.pod(f"on-{plain}", cpu=used, memory=f"{int(used) * 2}Gi", spec=_on(plain))
    await stage.rest("before")
    await stage.pod("new", cpu="500m", memory="1Gi")
    await stage.rest("new")
    await stage.pod("without-requests")
    await stage.rest("without requests")


async def least_allocated_by_size(stage: CaseStage) -> None:
    """The part that is left counts, not the amount."""
    await stage.node("large", cpu="64", memory="128Gi")
    await stage.pod("half", cpu="32", memory="64Gi")
    await stage.rest("half")
    await stage.node("small", cpu="4", memory="8Gi")
    await stage.pod("new", cpu="500m", memory="1Gi")
    await stage.rest("new")


async def balanced(stage: CaseStage) -> None:
    """Of two nodes with equally much left, the balanced one is chosen."""
    await stage.node("a", cpu="10", memory="10Gi")
    await stage.node("b", cpu="10", memory="10Gi")
    await stage.pod("cpu", cpu="6", memory="2Gi", spec=_on("a"))
    await stage.pod("even", cpu="4", memory="4Gi", spec=_on("b"))
    await stage.rest("before")
    await stage.pod("needs-memory", cpu="500m", memory="4Gi")
    await stage.rest("more memory")
    await stage.pod("needs-cpu", cpu="2", memory="512Mi")
    await stage.rest("more cpu")


async def soft_taint(stage: CaseStage) -> None:
    """A node that is tainted PreferNoSchedule is taken only if it is much better."""
    soft = [{"key": "avoid", "value": "x", "effect": "PreferNoSchedule"}]
    await stage.node("a", taints=soft)
    await stage.node("b")
    await stage.pod("load", cpu="3", memory="6Gi", spec=_on("b"))
    await stage.rest("load")
    await stage.pod("new", cpu="500m", memory="512Mi")
    await stage.rest("avoids the taint")
    tolerates = {"tolerations": [{"key": "avoid", "operator": "Exists"}]}
    await stage.pod("bears", cpu="100m", memory="128Mi", spec=tolerates)
    await stage.rest("tolerates it")
    await stage.pod("large", cpu="2", memory="2Gi")
    await stage.rest("fits only there")


async def preferred_nodes(stage: CaseStage) -> None:
    """Preferred node affinity, against a load."""
    await stage.node("a", labels={"disk": "fast"})
    await stage.node("b")
    await stage.pod("load", cpu="1", memory="1Gi", spec=_on("a"))
    await stage.rest("load")
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "preference": term}]}
    await stage.pod("wishes", cpu="1", spec={"affinity": {"nodeAffinity": wish}})
    await stage.pod("plain", cpu="500m", memory="512Mi")
    await stage.rest("placed")


async def default_spread(stage: CaseStage) -> None:
    """Pods of a ReplicaSet are spread over hosts, although other pods are unevenly there."""
    for plain in ("a", "b", "c"):
        await stage.node(plain, cpu="8", memory="16Gi")
    await stage.pod("load", cpu="2", memory="4Gi", spec=_on("a"))
    await stage.rest("load")
    await _replica_set(stage, 6, cpu="100m", memory="128Mi")
    await stage.rest("six pods")


async def zones(stage: CaseStage) -> None:
    """The default constraints know zones, too."""
    for plain, zone in (("a", "one"), ("b", "one"), ("c", "two")):
        await stage.node(plain, cpu="8", memory="16Gi", labels={ZONE: zone})
    await _replica_set(stage, 4, cpu="100m", memory="128Mi")
    await stage.rest("four pods")


async def hard_spread(stage: CaseStage) -> None:
    """A hard constraint refuses nodes; a node without the label is refused for good."""
    await _large_and_small(stage)
    await stage.node("nowhere", labels={HOST: None})
    rule = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    spec = {"topologySpreadConstraints": [{**rule, "labelSelector": SELECT_WEB}]}
    for plain in ("one", "two", "three", "four"):
        await stage.pod(plain, labels=WEB, spec=spec)
        await stage.rest(plain)
    await stage.patch_node("b", {"unschedulable": True})
    await stage.pod("five", labels=WEB, spec=spec)
    await stage.rest("one more")
    await stage.pod("six", labels=WEB, spec=spec)
    await stage.rest("no further")


async def anti_affinity(stage: CaseStage) -> None:
    """Required anti-affinity, of the pod itself and of those that are there."""
    await _large_and_small(stage)
    apart = {"podAntiAffinity": _required(SELECT_WEB)}
    for plain in ("one", "two", "three"):
        await stage.pod(plain, labels=WEB, spec={"affinity": apart})
        await stage.rest(plain)
    await stage.pod("shunned", labels=WEB)
    await stage.rest("others' rules count")
    await stage.pod("free", labels={"app": "other"})
    await stage.rest("others are free")


async def affinity(stage: CaseStage) -> None:
    """Required affinity: with a pod that is there, with none, and with itself."""
    for plain in ("a", "b"):
        await stage.node(plain)
    await stage.pod("base", labels=WEB, spec=_on("b"))
    await stage.pod("alone", spec={"affinity": {"podAffinity": _required(_select("none"))}})
    await stage.rest("one waits")
    await stage.pod("near", spec={"affinity": {"podAffinity": _required(SELECT_WEB)}})
    await stage.rest("near web")
    itself = {"affinity": {"podAffinity": _required(_select("self"))}}
    await stage.pod("first", labels={"app": "self"}, cpu="1", spec=itself | _on("a"))
    await stage.rest("the first of a set")
    await stage.pod("second", labels={"app": "self"}, spec=itself)
    await stage.rest("the second")


async def preferred_neighbours(stage: CaseStage) -> None:
    """Preferred affinity and anti-affinity."""
    for plain in ("a", "b"):
        await stage.node(plain)
    await stage.pod("base", labels=WEB, cpu="500m", memory="1Gi", spec=_on("a"))
    await stage.rest("base")
    term = {"labelSelector": SELECT_WEB, "topologyKey": HOST}
    wish = [{"weight": 100, "podAffinityTerm": term}]
    kind = "preferredDuringSchedulingIgnoredDuringExecution"
    await stage.pod("near", cpu="500m", spec={"affinity": {"podAffinity": {kind: wish}}})
    await stage.rest("near")
    await stage.pod("far", cpu="100m", spec={"affinity": {"podAntiAffinity": {kind: wish}}})
    await stage.rest("far")


async def host_ports(stage: CaseStage) -> None:
    """Two pods cannot use one port of a node."""
    await stage.node("a")
    ports = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    await stage.pod("one", container=ports)
    await stage.rest("one")
    await stage.pod("two", container=ports)
    await stage.rest("two waits")


async def queue_order(stage: CaseStage) -> None:
    """When room comes, the pod of the highest priority gets it."""
    await stage.priorities()
    await stage.node("a", cpu="1")
    for level, value in PRIORITIES.items():
        await stage.priority_class(f"polite-{level}", value, preemptionPolicy="Never")
    await stage.pod("holder", cpu="1", priority="high")
    await stage.rest("full")
    for plain in ("low", "high", "mid"):
        await stage.pod(f"wants-{plain}", cpu="1", priority=f"polite-{plain}")
    await stage.rest("three wait")
    await stage.delete("holder", force=True)
    await stage.rest("one runs", 12)


async def classes(stage: CaseStage) -> None:
    """Priority, policy and QoS class of new pods."""
    await stage.priorities()
    await stage.node("a")
    await stage.priority_class("usual", 5, globalDefault=True)
    await stage.priority_class("polite", 7, preemptionPolicy="Never")
    both = {"cpu": "100m", "memory": "64Mi"}
    await stage.pod("by-default")
    await stage.pod("polite", priority="polite", cpu="100m")
    await stage.pod("guaranteed", **both, limits=both, priority="mid")
    await stage.pod("cpu-only", cpu="100m", limits={"cpu": "100m"})
    await stage.pod("critical", priority="system-cluster-critical")
    await stage.pod("node-critical", priority="system-node-critical")
    await stage.refused("unknown", priority="nobody-knows")
    await stage.refused("other-number", priority="low", spec={"priority": 11})
    await stage.refused("other-policy", priority="low", spec={"preemptionPolicy": "Never"})
    await stage.rest("admitted")


async def preemption(stage: CaseStage) -> None:
    """The node whose victims are of the least priority, and as few victims as needed."""
    await stage.priorities()
    await stage.node("a", cpu="4")
    await stage.node("b", cpu="4")
    load = (("mid", "a", "4"), ("low", "b", "2"), ("low", "b", "1"), ("low", "b", "1"))
    for number, (level, node, asked) in enumerate(load):
        plain = f"{level}-{node}-{asked}-{number}"
        await stage.pod(plain, cpu=asked, priority=level, spec=_on(node))
        await stage.rest(f"load {number}")
        await stage.start(10 + 10 * number, plain)
    await stage.pod("high", cpu="2", priority="high")
    await stage.rest("victims leave")
    await stage.pod("late", cpu="1", priority="mid")
    await stage.rest("the room is kept")
    await stage.end_terminating()
    await stage.rest("the pod comes", 3)


async def reprieve(stage: CaseStage) -> None:
    """The more important pods stay: of higher priority, then those that run longer."""
    await stage.priorities()
    await stage.node("a", cpu="4")
    for plain, level, minutes in (("old", "low", 30), ("new", "low", 1), ("mid", "mid", 1)):
        await stage.pod(plain, cpu="1", priority=level)
        await stage.rest(plain)
        await stage.start(minutes, plain)
    await stage.pod("same", cpu="1", priority="high")
    await stage.rest("full")
    await stage.pod("high", cpu="1", priority="high")
    await stage.rest("one victim")
    await stage.pod("other", cpu="2", priority="high")
    await stage.rest("two further victims")
    await stage.end_terminating()
    await stage.rest("both come", 12)


async def not_preempted(stage: CaseStage) -> None:
    """No preemption: policy, priority, a pod that never fits, and other reasons than room."""
    await stage.priorities()
    await stage.node("a", cpu="2")
    await stage.node("b", cpu="2", taints=CLOSED)
    await stage.pod("low", cpu="2", priority="low")
    await stage.rest("full")
    await stage.priority_class("polite", 1000, preemptionPolicy="Never")
    await stage.pod("polite", cpu="1", priority="polite")
    await stage.pod("equal", cpu="1", priority="low")
    await stage.pod("giant", cpu="3", priority="high")
    await stage.rest("all wait")


async def budgets(stage: CaseStage) -> None:
    """A node is preferred where no budget is broken; where all are, one is broken."""
    await stage.priorities()
    await stage.node("a", cpu="2")
    await stage.node("b", cpu="2")
    await stage.pod("kept", cpu="2", priority="low", labels=WEB, spec=_on("a"))
    await stage.pod("other", cpu="2", priority="mid", spec=_on("b"))
    budget = {"minAvailable": 1, "selector": SELECT_WEB}
    await stage.create("policy/v1", "PodDisruptionBudget", "web", budget)
    await stage.rest("full")
    await stage.start()
    await stage.rest("they run")
    await stage.pod("high", cpu="2", priority="high")
    await stage.rest("the other leaves")
    await stage.end_terminating()
    await stage.rest("high comes", 3)
    await stage.pod("next", cpu="2", priority="high")
    await stage.rest("the budget is broken")


async def nomination(stage: CaseStage) -> None:
    """A pod of higher priority takes the place that was made for another."""
    await stage.priorities()
    await stage.node("a", cpu="2")
    await stage.pod("low", cpu="2", priority="low")
    await stage.rest("full")
    await stage.pod("mid", cpu="2", priority="mid")
    await stage.rest("nominated")
    await stage.pod("high", cpu="2", priority="high")
    await stage.rest("the higher one waits, too")
    await stage.end_terminating()
    await stage.rest("the higher one comes", 12)


async def critical(stage: CaseStage) -> None:
    """A critical pod needs only cpu: the scheduler makes room."""
    await stage.node("a", cpu="2")
    await stage.pod("plain", cpu="2")
    await stage.rest("full")
    await stage.pod("critical", cpu="1", priority="system-cluster-critical")
    await stage.rest("the victim leaves")
    await stage.end_terminating()
    await stage.rest("it runs", 3)


async def daemons(stage: CaseStage) -> None:
    """One pod for each node that it may use; nodes come, are cordoned, tainted and go."""
    await stage.node("a", labels={"pool": "x"})
    await stage.node("b", unschedulable=True)
    await stage.node("c", taints=CLOSED)
    await _daemon_set(stage, "agent")
    await stage.rest("two nodes")
    await stage.start()
    await stage.rest("they run")
    await stage.node("d", labels={"pool": "x"})
    await stage.rest("a node came")
    await stage.patch_node("a", {"taints": CLOSED})
    await stage.rest("NoSchedule: the pod stays")
    await stage.patch_node("c", {"taints": None})
    await stage.rest("the taint is gone")
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"pool": "x"}}}}}
    await stage.patch(DAEMON_SET, "agent", selector)
    await stage.rest("only one pool")
    await stage.end_terminating()
    await stage.rest("their pods are gone")


async def full_daemons(stage: CaseStage) -> None:
    """A daemon pod that does not fit waits for its node; its priority makes room."""
    await stage.priorities()
    await stage.node("a", cpu="2")
    await stage.node("b", cpu="2")
    await stage.pod("load", cpu="2", priority="low", spec=_on("a"))
    await stage.rest("full")
    await _daemon_set(stage, "agent", cpu="1", priority="low")
    await stage.rest("one waits")
    await _daemon_set(stage, "vital", cpu="1", priority="high")
    await stage.rest("the other makes room")


async def daemon_template(stage: CaseStage) -> None:
    """A new template replaces pods one by one; a deleted pod comes back."""
    await stage.node("a")
    await stage.node("b")
    await _daemon_set(stage, "agent", cpu="100m")
    await stage.rest("placed")
    await stage.start()
    await stage.rest("they run")
    new = {"containers": [{"name": "main", "image": "registry.example/main:2"}]}
    await stage.client.apply(_daemon_body("agent", new), "people")
    await stage.rest("one leaves")
    await stage.end_terminating()
    await stage.rest("one came")
    await stage.start()
    await stage.rest("the other leaves")
    await stage.end_terminating()
    await stage.rest("the other came")
    await stage.start()
    await stage.rest("all are new")


async def _large_and_small(stage: CaseStage) -> None:
    """Two nodes, of which the first is always the better one."""
    await stage.node("a", cpu="64", memory="128Gi", pods="100")
    await stage.node("b")


_SIZES = {
    # pod: spec, allocated, actual, the condition's reason, and what it takes of 4 cpus
    "grows": ("2", "1", "1", "Deferred", "2"),
    "granted": ("2", "2", "1", "", "2"),
    "shrinks": ("500m", "500m", "2", "", "2"),
    "infeasible": ("3", "1", "1", "Infeasible", "1"),
    "infeasible-more": ("1500m", "1", "2", "Infeasible", "2"),
    "unallocated": ("500m", "", "2", "", "2"),
    "unreported": ("1", "3", "", "", "1"),
    "silent": ("2", "", "", "Infeasible", "2"),
}


async def resizes(stage: CaseStage) -> None:
    """A pod counts with the most of what is wanted, allocated and actual."""
    for plain in _SIZES:
        await stage.node(plain, cpu="4")
        await stage.pod(plain, cpu="1", spec=_on(plain))
    await stage.rest("placed")
    for plain, (wanted, allocated, actual, pending, _) in _SIZES.items():
        if wanted != "1":
            await stage.resize(plain, wanted)
        await stage.report(plain, allocated, actual, pending)
    await stage.rest("resized")
    for plain, (*_, used) in _SIZES.items():
        left = 4000 - int(used) * 1000
        await stage.pod(f"{plain}-too-large", cpu=f"{left + 1}m", spec=_on(plain))
        await stage.pod(f"{plain}-fits", cpu=f"{left}m", spec=_on(plain))
    await stage.rest("probed")


async def room_by_a_resize(stage: CaseStage) -> None:
    """A pod that waits for room gets it when another pod has shrunk."""
    await stage.node("a", cpu="4")
    await stage.pod("large", cpu="3")
    await stage.rest("large")
    await stage.report("large", "3", "3")
    await stage.pod("waits", cpu="2")
    await stage.rest("waits")
    await stage.resize("large", "1")
    await stage.rest("asked for less")
    await stage.report("large", "1", "3")
    await stage.rest("admitted")
    await stage.report("large", "1", "1")
    await stage.rest("done")


def _on(node: str) -> dict[str, Any]:
    return {"nodeSelector": {HOST: node}}


def _select(app: str) -> dict[str, Any]:
    return {"matchLabels": {"app": app}}


def _required(selector: dict[str, Any]) -> dict[str, Any]:
    term = {"labelSelector": selector, "topologyKey": HOST}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


async def _replica_set(stage: CaseStage, replicas: int, **given: Any) -> None:
    template = {"metadata": {"labels": WEB}, "spec": pod_spec(**given)}
    spec = {"replicas": replicas, "selector": SELECT_WEB, "template": template}
    await stage.create("apps/v1", "ReplicaSet", "web", spec)


def _daemon_body(plain: str, pod: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": plain}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    meta = {"name": plain, "namespace": "case"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec}


async def _daemon_set(stage: CaseStage, plain: str, **given: Any) -> None:
    await stage.client.create(_daemon_body(plain, pod_spec(**given)))


CASES: tuple[Case, ...] = (
    insufficient,
    full_of_pods,
    room_comes,
    init_containers,
    least_allocated,
    least_allocated_by_size,
    balanced,
    soft_taint,
    preferred_nodes,
    default_spread,
    zones,
    hard_spread,
    anti_affinity,
    affinity,
    preferred_neighbours,
    host_ports,
    queue_order,
    classes,
    preemption,
    reprieve,
    not_preempted,
    budgets,
    nomination,
    critical,
    daemons,
    full_daemons,
    daemon_template,
    resizes,
    room_by_a_resize,
)
