"""Random clusters of GPU nodes, whose pods are few on some nodes; how many can be emptied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from random import Random

from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset

from claimctl_reschedule_labs.clusters.names import CLASSES, DRIVER, SPACES, Body
from claimctl_reschedule_labs.clusters.workloads import Wave, Workload

DEVICES = 4
"""Of each node."""
PERCENT = 75


def nodes_of(rng: Random) -> tuple[ClusterOptions, list[Body]]:
    options = ClusterOptions(
        preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=rng.randint(3, 6), devices_per_node=0
    )
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return options, [{"labels": {}, "taints": [], "room": room} for _ in range(options.nodes)]


def slices_of(nodes: int) -> list[tuple[str, Body]]:
    slices = []
    for node in (f"node-{index}" for index in range(nodes)):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices: list[Body] = [{"name": f"dev-{number}"} for number in range(DEVICES)]
        spec: Body = {"driver": DRIVER, "pool": pool, "devices": devices, "nodeName": node}
        slices.append(("resourceslices", {"metadata": {"name": node}, "spec": spec}))
    return slices


def waves_of(rng: Random, nodes: int) -> list[Wave]:
    """The workloads of each node, while all others are closed."""
    waves = []
    for node in range(nodes):
        left, here = rng.choice((0, 1, 1, 2, 2, 3, 4)), list[Workload]()
        while left:
            count = 2 if left > 1 and rng.random() < 0.25 else 1
            left -= count
            here.append(_workload(rng, f"app-{node}-{len(here)}", count))
        closed = tuple(index for index in range(nodes) if index != node)
        waves.append(Wave(closed, tuple(here)))
    return waves


def _workload(rng: Random, name: str, count: int) -> Workload:
    """One pod with a claim of its own, or up to three that share a held one."""
    pods, space = rng.choice((0, 0, 2, 3)), rng.choice(SPACES)
    exactly = {"deviceClassName": CLASSES[0], "count": count}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    kind, key = ("claims", "Name") if pods else ("claimtemplates", "TemplateName")
    meta = {"name": name, "namespace": space}
    wanted: Body = {"metadata": meta, "spec": spec if pods else {"spec": spec}}
    requests = {"cpu": f"{rng.choice((500, 1000, 2000))}m"}
    resources = {"requests": requests, "claims": [{"name": "gpu"}]}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "containers": [{"name": "main", "image": "x", "resources": resources}],
            "resourceClaims": [{"name": "gpu", f"resourceClaim{key}": name}],
        },
    }
    annotations = {"claimctl.io/reserve": name} if pods else {}
    plural = "deployments" if pods else rng.choice(("deployments", "statefulsets"))
    owner: Body = {
        "metadata": {**meta, "annotations": annotations},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
            **({"serviceName": name} if plural == "statefulsets" else {}),
        },
    }
    return Workload(name, space, ((f"resource{kind}", wanted), (plural, owner)), plural, pods or 1)


def most_emptied(cluster: Cluster) -> int:
    """How many of the nodes below the threshold can be emptied: all sets of them are tried."""
    used: dict[str, list[int]] = defaultdict(list)
    for space in SPACES:
        for claim in cluster.admin.list("resourceclaims", space):
            results = claim["status"]["allocation"]["devices"]["results"]
            used[results[0]["pool"]].append(len(results))
    under = [name for name, sizes in used.items() if sum(sizes) * 100 < PERCENT * DEVICES]
    for number in range(len(under), 0, -1):
        for chosen in combinations(under, number):
            room = [DEVICES - sum(sizes) for name, sizes in used.items() if name not in chosen]
            if _packs(sorted(size for name in chosen for size in used[name])[::-1], room):
                return number
    return 0


def _packs(sizes: Sequence[int], room: list[int]) -> bool:
    if not sizes:
        return True
    return any(
        free >= sizes[0] and _packs(sizes[1:], [*room[:index], free - sizes[0], *room[index + 1 :]])
        for index, free in enumerate(room)
    )
