"""A random cluster, made of its seed alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from kube_in_process.options import ClusterOptions, Preset

from claimctl_reschedule_labs.clusters import gpus
from claimctl_reschedule_labs.clusters.names import (
    BATCH,
    CLASSES,
    DRIVER,
    EXTRA,
    HOST,
    NIC_DRIVER,
    PRIORITIES,
    SYSTEM,
    ZONE,
    Body,
    chance,
    claim_spec,
)
from claimctl_reschedule_labs.clusters.workloads import Wave, Workload, budget, hungry, workload

DUPLICATES, UTILIZATION, CRITICAL = "RemoveDuplicates", "LowNodeUtilization", "CriticalPods"
ALL, EMPTYING, GPUS = "all three", "HighNodeUtilization", "the same, GPUs"
STRATEGIES = (DUPLICATES, UTILIZATION, CRITICAL, ALL)
"""They take turns. ``EMPTYING`` contradicts one of them: it and ``GPUS`` are asked for."""
DIALECTS = (
    (Preset.PLAIN, (1, 34)),
    (Preset.PLAIN, (1, 36)),
    (Preset.POD_GROUPS, (1, 36)),
    (Preset.POD_GROUPS, (1, 37)),
    (Preset.RESERVED_FOR_ANY_POD, (1, 36)),
)


@dataclass(frozen=True, slots=True)
class Made:
    """A cluster, and the policy of the runs on it."""

    seed: int
    strategy: str
    options: ClusterOptions
    nodes: tuple[Body, ...]
    """Patches of the nodes, and of their status."""
    objects: tuple[tuple[str, Body], ...]
    """What exists before the workloads."""
    waves: tuple[Wave, ...]
    cordoned: tuple[int, ...]
    """Nodes that stay cordoned."""
    late: tuple[tuple[str, Body], ...]
    """What comes last: disruption budgets, and critical pods that wait."""
    policy: Body


def made(seed: int, strategy: str = "") -> Made:
    """The cluster of a seed. Strategies take turns, unless one is given."""
    rng = Random(f"cluster {seed}")
    strategy = strategy or STRATEGIES[seed % len(STRATEGIES)]
    if strategy == GPUS:
        return _of_gpus(rng, seed)
    rescues = strategy in (CRITICAL, ALL)
    dialect, version = rng.choice(DIALECTS)
    count = rng.randint(3, 6)
    options = ClusterOptions(
        preset=dialect,
        kubernetes_version=version,
        nodes=count,
        devices_per_node=0,
        seed=seed,
    )
    waves = _waves(rng, count, rescues=rescues)
    apps = [workload for wave in waves for workload in wave.workloads]
    late = [("poddisruptionbudgets", budget) for budget in _budgets(rng, apps)]
    if rescues:
        late += _critical(rng, count)
    return Made(
        seed=seed,
        strategy=strategy,
        options=options,
        nodes=tuple(_node(rng, index) for index in range(count)),
        objects=(*_classes(), *_slices(rng, count, 3 if rescues else 8), *_system(rng)),
        waves=tuple(waves),
        cordoned=tuple(index for index in range(count) if chance(rng, 0.08)),
        late=tuple(late),
        policy=_policy(rng, strategy),
    )


def _of_gpus(rng: Random, seed: int) -> Made:
    """Nodes with devices and nothing else that matters, so that brute force knows the best."""
    options, nodes = gpus.nodes_of(rng)
    thresholds = {f"deviceclass.resource.kubernetes.io/{CLASSES[0]}": gpus.PERCENT}
    policy = _policy(rng, EMPTYING)
    config = policy["profiles"][0]["pluginConfig"]
    config[0]["args"] = {"moveHeldClaims": "WholeUnit"}
    config[1]["args"] = {"thresholds": thresholds}
    return Made(
        seed=seed,
        strategy=GPUS,
        options=replace(options, seed=seed),
        nodes=tuple(nodes),
        objects=(*_classes(), *gpus.slices_of(options.nodes), *_system(rng)[:1]),
        waves=tuple(gpus.waves_of(rng, options.nodes)),
        cordoned=(),
        late=(),
        policy={key: policy[key] for key in ("apiVersion", "kind", "profiles")},
    )


LARGE, LARGE_PODS = 10, 80
"""The nodes of a large cluster, and the fewest pods of its workloads."""
COMPARED: Body = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "compared",
            "pluginConfig": [
                {
                    "name": UTILIZATION,
                    "args": {
                        "thresholds": {"cpu": 25, "memory": 25, "pods": 25},
                        "targetThresholds": {"cpu": 50, "memory": 50, "pods": 50},
                    },
                }
            ],
            "plugins": {"balance": {"enabled": [DUPLICATES, UTILIZATION]}},
        }
    ],
}
"""The policy by which claimctl was compared with the descheduler."""


def large(seed: int) -> Made:
    """A larger cluster of a seed, with the policy ``COMPARED``."""
    rng = Random(f"large cluster {seed}")
    options = ClusterOptions(
        preset=Preset.PLAIN,
        kubernetes_version=(1, 36),
        nodes=LARGE,
        devices_per_node=0,
        seed=seed,
    )
    waves: list[Wave] = []
    apps: list[Workload] = []
    while sum(app.pods for app in apps) < LARGE_PODS:
        closed = tuple(rng.sample(range(LARGE), rng.randint(3, 5)))
        names = [app.name for app in apps]
        made = [workload(rng, len(apps) + number, names) for number in range(4)]
        for each in made:
            # many pods of other priorities may preempt each other for ever
            each.objects[-1][1]["spec"]["template"]["spec"].pop("priorityClassName", None)
        waves.append(Wave(closed, tuple(made)))
        apps += made
    return Made(
        seed=seed,
        strategy="compared",
        options=options,
        nodes=tuple(_node(rng, index) for index in range(LARGE)),
        objects=(*_classes(), *_slices(rng, LARGE, 8), *_system(rng)),
        waves=tuple(waves),
        cordoned=(),
        late=tuple(("poddisruptionbudgets", each) for each in _budgets(rng, apps)),
        policy=COMPARED,
    )


def _node(rng: Random, index: int) -> Body:
    labels = {ZONE: rng.choice("abc"), "disk": rng.choice(("ssd", "hdd"))}
    taints = []
    if chance(rng, 0.12):
        taints.append({"key": BATCH, "value": "batch", "effect": "NoSchedule"})
    if chance(rng, 0.12):
        taints.append({"key": "slow", "value": "", "effect": "PreferNoSchedule"})
    room = {
        "cpu": str(rng.choice((8, 16, 16, 32))),
        "memory": f"{rng.choice((16, 32, 64))}Gi",
        "pods": str(rng.choice((16, 24, 40, 110))),
    }
    if chance(rng, 0.4):
        room[EXTRA] = "2"
    return {"labels": labels, "taints": taints, "room": room}


def _classes() -> list[tuple[str, Body]]:
    chosen = (
        f'device.driver == "{DRIVER}"',
        f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].size >= 2',
        f'device.driver == "{NIC_DRIVER}"',
    )
    classes = [
        ("deviceclasses", {"metadata": {"name": name}, "spec": _selecting(expression)})
        for name, expression in zip(CLASSES, chosen, strict=True)
    ]
    return classes + [
        ("priorityclasses", {"metadata": {"name": name}, **fields})
        for name, fields in PRIORITIES.items()
    ]


def _selecting(expression: str) -> Body:
    return {"selectors": [{"cel": {"expression": expression}}]}


def _slices(rng: Random, nodes: int, most: int) -> list[tuple[str, Body]]:
    """Devices of two drivers on most nodes, and now and then a pool that several nodes reach."""
    pools = []
    for index in range(nodes):
        for driver, share in ((DRIVER, 0.9), (NIC_DRIVER, 0.6)):
            if chance(rng, share):
                node = f"node-{index}"
                place: Body = {"nodeName": node}
                pools.append(_slice(rng, driver, node, rng.randint(1, most), place))
    if chance(rng, 0.2):
        term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
        place = {"nodeSelector": {"nodeSelectorTerms": [term]}}
        pools.append(_slice(rng, NIC_DRIVER, "fabric", 3, place))
    return [("resourceslices", pool) for pool in pools]


def _slice(rng: Random, driver: str, pool: str, count: int, place: Body) -> Body:
    devices = []
    for number in range(count):
        attributes = {
            "model": {"string": rng.choice("ab")},
            "size": {"int": rng.choice((1, 2, 4))},
        }
        device: Body = {"name": f"dev-{number}", "attributes": attributes}
        if chance(rng, 0.05):
            device["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
        devices.append(device)
    return {
        "metadata": {"name": f"{pool}-{driver}"},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
            **place,
        },
    }


def _system(rng: Random) -> list[tuple[str, Body]]:
    """A DaemonSet, a pod of nobody, and pods that have finished or failed."""
    container = {"name": "main", "image": "agent:1", "resources": {"requests": {"cpu": "100m"}}}
    tolerations = [{"operator": "Exists"}]
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {
            "containers": [container],
            "tolerations": tolerations,
            "priorityClassName": "system-node-critical",
        },
    }
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    bodies: list[tuple[str, Body]] = [
        ("daemonsets", {"metadata": {"name": "agent", "namespace": SYSTEM}, "spec": spec})
    ]
    if chance(rng, 0.5):
        meta = {"name": "alone", "namespace": "team"}
        bodies.append(("pods", {"metadata": meta, "spec": {"containers": [container]}}))
    for name, code in (("done", "0"), ("broken", "1")):
        annotations = {
            "kube-in-process/run-seconds": "1",
            "kube-in-process/exit-code": code,
        }
        template = {
            "metadata": {"annotations": annotations},
            "spec": {"containers": [container], "restartPolicy": "Never"},
        }
        job = {"completions": 2, "parallelism": 2, "backoffLimit": 0, "template": template}
        bodies.append(("jobs", {"metadata": {"name": name, "namespace": "team"}, "spec": job}))
    return bodies


def _waves(rng: Random, nodes: int, *, rescues: bool) -> list[Wave]:
    """Two or three waves of workloads, each beside some cordoned nodes."""
    waves: list[Wave] = []
    apps: list[str] = []
    if rescues:
        devices = [
            hungry(rng, number, rng.randint(1, 6), held=True) for number in range(rng.randint(1, 5))
        ]
        spared = tuple(rng.sample(range(nodes), rng.choice((0, 1, 1))))
        waves.append(Wave(spared, (*devices, hungry(rng, len(devices), 3 * nodes, held=False))))
    for _ in range(rng.randint(2, 3)):
        random_waves = []
        for _ in range(rng.randint(2, 5)):
            random_waves.append(workload(rng, len(apps), apps))
            apps.append(random_waves[-1].name)
        closed = tuple(rng.sample(range(nodes), rng.randint(nodes // 2, nodes - 1)))
        waves.append(Wave(closed, tuple(random_waves)))
    return waves


def _budgets(rng: Random, apps: list[Workload]) -> list[Body]:
    """About half of the workloads have a budget, some of them two."""
    budgets = []
    for app in apps:
        if chance(rng, 0.5):
            budgets.append(budget(rng, app.name, app.namespace, 0))
            if chance(rng, 0.1):
                budgets.append(budget(rng, app.name, app.namespace, 1))
    return budgets


def _critical(rng: Random, nodes: int) -> list[tuple[str, Body]]:
    """One or two critical pods that want devices."""
    bodies: list[tuple[str, Body]] = []
    for number in range(rng.choice((1, 1, 2))):
        name = f"vital-{number}"
        by_annotation = chance(rng, 0.25)
        meta = {"name": name, "namespace": SYSTEM}
        bodies.append(("resourceclaims", {"metadata": meta, "spec": claim_spec(rng, CLASSES[0])}))
        spec: Body = {
            "containers": [
                {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        }
        if not by_annotation:
            spec["priorityClassName"] = "system-cluster-critical"
        if chance(rng, 0.6):
            spec["nodeSelector"] = {HOST: f"node-{rng.randrange(nodes)}"}
        mark = "scheduler.alpha.kubernetes.io/critical-pod"
        annotations = {mark: ""} if by_annotation else {}
        bodies.append(("pods", {"metadata": {**meta, "annotations": annotations}, "spec": spec}))
    return bodies


def _policy(rng: Random, strategy: str) -> Body:
    evictor: Body = {"moveHeldClaims": rng.choice(("Never", "WholeUnit", "WholeUnit"))}
    if chance(rng, 0.3):
        evictor["minReplicas"] = 2
    if chance(rng, 0.5):
        evictor["maxUnavailablePerWorkload"] = rng.randint(1, 3)
    config = [{"name": "DefaultEvictor", "args": evictor}]
    plugins: dict[str, list[str]] = {"deschedule": [], "balance": []}
    if strategy in (CRITICAL, ALL):
        args = {"unschedulableSeconds": 5, "podScheduledTimeoutSeconds": 300}
        config.append({"name": CRITICAL, "args": args})
        plugins["deschedule"].append(CRITICAL)
    if strategy in (DUPLICATES, ALL):
        plugins["balance"].append(DUPLICATES)
    if strategy in (UTILIZATION, ALL):
        config.append({"name": UTILIZATION, "args": _thresholds(rng)})
        plugins["balance"].append(UTILIZATION)
    if strategy == EMPTYING:
        names = [f"deviceclass.resource.kubernetes.io/{CLASSES[0]}", "pods"]
        thresholds: Body = {rng.choice(names): rng.randint(40, 80)}
        config.append({"name": EMPTYING, "args": {"thresholds": thresholds}})
        plugins["balance"].append(EMPTYING)
    enabled = {point: {"enabled": names} for point, names in plugins.items() if names}
    policy: Body = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [{"name": "random", "pluginConfig": config, "plugins": enabled}],
    }
    if chance(rng, 0.15):
        policy["maxNoOfPodsToEvictPerNode"] = rng.randint(1, 4)
    if chance(rng, 0.1):
        policy["maxNoOfPodsToEvictTotal"] = rng.randint(1, 6)
    return policy


def _thresholds(rng: Random) -> Body:
    names = [resource for resource in ("cpu", "memory", "pods") if chance(rng, 0.6)]
    if chance(rng, 0.4):
        names.append(f"deviceclass.resource.kubernetes.io/{CLASSES[0]}")
    if chance(rng, 0.1):
        names.append(EXTRA)
    names = names or ["pods"]
    low = {name: rng.randint(15, 45) for name in names}
    high = {name: low[name] + rng.randint(5, 30) for name in names}
    args: Body = {"thresholds": low, "targetThresholds": high}
    if chance(rng, 0.15):
        args["useDeviationThresholds"] = True
    return args
