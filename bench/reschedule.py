"""What one plan of ``claimctl reschedule`` costs, and how that grows with the cluster.

Each size is planned in a process of its own: it decodes pages of 500 objects as a LIST gives them,
and plans. A tenth of the pods has a claim. There are two cases:

``balance``: duplicates and usage. The pods of a workload are crowded on some nodes.
``critical``: a critical pod waits for a device, and each node has its devices in one claim. Each
node is a little better than the one before, so that all of them are looked at to the end.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from bench.table import BenchPart, Line, register, tell

PER_NODE, REPLICAS, DEVICES = 10, 20, 4
"""Pods of a node, pods of a workload, and devices of a node."""
CLASS, DRIVER, NAMESPACE = "gpu.example.com", "gpu.example.com", "ml"
Objects = Iterator[dict[str, Any]]
POLICY: dict[str, Any] = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "all",
            "pluginConfig": [
                {
                    "name": "LowNodeUtilization",
                    "args": {
                        "thresholds": {"cpu": 15},
                        "targetThresholds": {"cpu": 30},
                    },
                }
            ],
            "plugins": {"balance": {"enabled": ["RemoveDuplicates", "LowNodeUtilization"]}},
        }
    ],
}
CRITICAL: dict[str, Any] = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "all",
            "pluginConfig": [{"name": "DefaultEvictor", "args": {"moveHeldClaims": "WholeUnit"}}],
            "plugins": {"deschedule": {"enabled": ["CriticalPods"]}},
        }
    ],
}
CRITICAL_PODS = 5
"""How many critical pods wait in the second plan of that case."""
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _node(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    return {
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _slice(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    devices = [{"name": f"gpu-{each}", "attributes": {}} for each in range(DEVICES)]
    return {
        "metadata": {"name": name, "uid": f"s-{number}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _pod(number: int, nodes: int) -> dict[str, Any]:
    """The pods of a workload are on every other place of the first three quarters of the nodes."""
    owner = number // REPLICAS
    place = (owner * 7 + number % REPLICAS // 2) % max(nodes * 3 // 4, 1)
    claimed = number % 10 == 0
    spec: dict[str, Any] = {
        "nodeName": f"node-{place}",
        "schedulerName": "default-scheduler",
        "priority": 0,
        "containers": [
            {
                "name": "main",
                "image": f"image-{owner}",
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
            }
        ],
    }
    if claimed:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"claim-{number}"}]
    return {
        "metadata": {
            "name": f"pod-{number}",
            "namespace": NAMESPACE,
            "uid": f"p-{number}",
            "labels": {"app": f"app-{owner}"},
            "creationTimestamp": "2025-12-01T00:00:00Z",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"rs-{owner}",
                    "uid": f"rs-{owner}",
                    "controller": True,
                }
            ],
        },
        "spec": spec,
        "status": {
            "phase": "Running",
            "qosClass": "Burstable",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _claim(number: int, pod: dict[str, Any]) -> dict[str, Any]:
    """The claim of a pod, with a device of the pod's node."""
    node = pod["spec"]["nodeName"]
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": f"gpu-{number % DEVICES}"}
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
    ]
    return {
        "metadata": {"name": f"claim-{number}", "namespace": NAMESPACE, "uid": f"c-{number}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": CLASS}}]}},
        "status": {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": terms},
            },
            "reservedFor": [
                {"resource": "pods", "name": pod["metadata"]["name"], "uid": f"p-{number}"}
            ],
        },
    }


def _pages(items: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    page: list[dict[str, Any]] = []
    for each in items:
        page.append(each)
        if len(page) == 500:
            yield json.dumps({"metadata": {}, "items": page}).encode()
            page = []
    yield json.dumps({"metadata": {}, "items": page}).encode()


def _critical_pod(number: int) -> dict[str, Any]:
    """A critical pod that waits for a device."""
    name = f"critical-{number}"
    waits = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": "2025-12-31T00:00:00Z",
    }
    return {
        "metadata": {"name": name, "namespace": "kube-system", "uid": f"u-{name}"},
        "spec": {
            "schedulerName": "default-scheduler",
            "priority": 2_000_000_000,
            "priorityClassName": "system-cluster-critical",
            "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            "containers": [{"name": "main", "image": "critical"}],
        },
        "status": {"phase": "Pending", "conditions": [waits]},
    }


def _wanted_claim(number: int) -> dict[str, Any]:
    """The claim of a critical pod, without devices."""
    name = f"critical-{number}"
    return {
        "metadata": {"name": name, "namespace": "kube-system", "uid": f"w-{name}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": CLASS}}]}},
    }


def _full(nodes: int, waiting: int) -> tuple[Objects, Objects]:
    """The pods and claims of the case ``critical``: each node's devices are in one claim.

    Its pods are an hour younger than those of the node before, in the order of the nodes' names.
    """
    names = sorted(f"node-{number}" for number in range(nodes))
    born = {name: _NOW - timedelta(hours=nodes - index) for index, name in enumerate(names)}

    def pods() -> Iterator[dict[str, Any]]:
        for number in range(nodes * PER_NODE):
            pod = _pod(number, nodes)
            node = pod["spec"]["nodeName"] = f"node-{number // PER_NODE}"
            pod["metadata"]["creationTimestamp"] = f"{born[node]:%Y-%m-%dT%H:%M:%SZ}"
            yield pod
        yield from map(_critical_pod, range(waiting))

    def claims() -> Iterator[dict[str, Any]]:
        for number in range(0, nodes * PER_NODE, PER_NODE):
            pod = _pod(number, nodes)
            pod["spec"]["nodeName"] = f"node-{number // PER_NODE}"
            claim = _claim(number, pod)
            results = claim["status"]["allocation"]["devices"]["results"]
            results[:] = [{**results[0], "device": f"gpu-{each}"} for each in range(DEVICES)]
            yield claim
        yield from map(_wanted_claim, range(waiting))

    return pods(), claims()


def _crowded(nodes: int) -> tuple[Objects, Objects]:
    """The pods and claims of the case ``balance``."""
    numbers = range(nodes * PER_NODE)
    claims = (_claim(each, _pod(each, nodes)) for each in numbers if each % 10 == 0)
    return (_pod(each, nodes) for each in numbers), claims


def planned(nodes: int, waiting: int = 0) -> dict[str, float]:
    """Decode a cluster and plan; CPU seconds of both, the peak MB, and the moves.

    Args:
        waiting: critical pods that wait for devices; 0 for the case ``balance``.
    """
    from claimctl.kube.codec import decode_page
    from claimctl_reschedule.plan.observed import Observed
    from claimctl_reschedule.plan.planning import plan
    from claimctl_reschedule.policyfile.reading import check
    from claimctl_reschedule.run import observing
    from claimctl_reschedule.shapes.scheduling import SCHEDULING_PODS

    decoding = 0.0

    def listed(kind: Any, items: Iterator[dict[str, Any]]) -> tuple[Any, ...]:
        nonlocal decoding
        found: list[Any] = []
        for page in _pages(items):
            began = time.process_time()
            found += decode_page(kind, page).items
            decoding += time.process_time() - began
        return tuple(found)

    pods, claims = _full(nodes, waiting) if waiting else _crowded(nodes)
    observed = Observed(
        now=_NOW,
        pods=listed(SCHEDULING_PODS, pods),
        nodes=listed(observing.ALL_NODES, map(_node, range(nodes))),
        slices=listed(observing.SLICES, map(_slice, range(nodes))),
        claims=listed(observing.CLAIMS, claims),
        device_classes=listed(
            observing.DEVICE_CLASSES, iter([{"metadata": {"name": CLASS}, "spec": {}}])
        ),
    )
    policy = check(CRITICAL if waiting else POLICY).policy
    began = time.process_time()
    made = plan(observed, policy)
    took = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "decode": decoding,
        "plan": took,
        "memory": peak,
        "moves": len(made.moves),
        "stayed": len(made.skipped),
    }


def _child(nodes: int, waiting: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.reschedule", str(nodes), str(waiting)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=1800)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _measure(options: argparse.Namespace) -> Iterator[Line]:
    yield from _case(options, "balance", 0)
    one = yield from _case(options, "a critical pod", 1)
    more = [_child(options.nodes, CRITICAL_PODS)["plan"] for _ in range(options.runs)]
    each = (median(more) - one) / (CRITICAL_PODS - 1)
    name = f"reschedule, each further critical pod: {options.nodes:,} nodes: CPU of the plan"
    yield Line(name, each, unit="s", runs=options.runs)


def _case(options: argparse.Namespace, case: str, waiting: int) -> Generator[Line, None, float]:
    """Measure one case at three sizes; the CPU seconds of the largest plan."""
    sizes = [options.nodes // 4, options.nodes // 2, options.nodes]
    taken: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
    for _ in range(options.runs):
        for size in sizes:
            found = _child(size, waiting)
            taken[size].append(found)
            tell(
                f"{case}: {size:6} nodes  plan {found['plan']:7.2f} s  {found['memory']:7.1f} MB  "
                f"{found}"
            )

    def middle(size: int, what: str) -> float:
        return median(each[what] for each in taken[size])

    size, runs = options.nodes, options.runs
    name = f"reschedule, {case}: {size:,} nodes, {size * PER_NODE:,} pods, {size:,} claims"
    yield Line(f"{name}: moves", middle(size, "moves"), runs=runs)
    yield Line(f"{name}: CPU to decode", middle(size, "decode"), unit="s", runs=runs)
    yield Line(f"{name}: CPU of the plan", middle(size, "plan"), unit="s", runs=runs)
    yield Line(f"{name}: peak memory", middle(size, "memory"), unit="MB", runs=runs)
    for what, text in (("plan", "CPU of the plan"), ("memory", "memory")):
        small, large = middle(sizes[0], what), middle(size, what)
        power = math.log(large / small) / math.log(size / sizes[0])
        growth = f"reschedule, {case}: growth of the {text}, as a power of the size"
        yield Line(growth, power, runs=runs)
    return middle(size, "plan")


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=3)


register(BenchPart("reschedule", "CPU and memory of one plan, and how both grow", _measure, _flags))

if __name__ == "__main__":
    print(json.dumps(planned(int(sys.argv[1]), int(sys.argv[2]))))
