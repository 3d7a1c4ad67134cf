"""How long an embedded cluster takes, in real time, until every pod of a Deployment runs.

    .venv/bin/python bench/embedded_pods.py [PODS] [native|hold]

The pods share one claim. The kubelets' status writes are part of it; HTTP is not.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.story.presets import PRESETS

WORKLOAD = {"apiGroup": "apps", "resource": "deployments", "name": "work", "uid": "work-uid"}


class RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def claim(dialect: Preset) -> dict[str, object]:
    exactly = {"deviceClassName": "gpu.example.com"}
    spec: dict[str, object] = {"devices": {"requests": [{"name": "d", "exactly": exactly}]}}
    if dialect is Preset.RESERVED_FOR_ANY_POD:
        spec["reservedFor"] = WORKLOAD
    return {"metadata": {"name": "shared", "namespace": "default"}, "spec": spec}


def deployment(pods: int) -> dict[str, object]:
    labels = {"app": "work"}
    spec = {
        "containers": [{"name": "c", "image": "x"}],
        "resourceClaims": [{"name": "c", "resourceClaimName": "shared"}],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {"replicas": pods, "selector": {"matchLabels": labels}, "template": template},
    }


async def until(cluster: Cluster, done: Callable[[], bool]) -> float:
    """Seconds until something is so."""
    began = time.perf_counter()
    changed = asyncio.Event()
    stop = cluster.store.subscribe(lambda _: changed.set())
    while not done():
        changed.clear()
        await changed.wait()
    stop()
    return time.perf_counter() - began


def available(cluster: Cluster) -> int:
    status = cluster.admin.get("deployments", "default", "work")["status"]
    found: int = status.get("availableReplicas", 0)
    return found


async def measure(pods: int, dialect: Preset) -> None:
    cluster = Cluster(ClusterOptions(preset=dialect), RealClock())
    await cluster.start()
    cluster.admin.create("resourceclaims", claim(dialect))
    cluster.admin.create("deployments", deployment(pods))
    up = await until(cluster, lambda: available(cluster) == pods)
    writes = Counter(each.plural for each in cluster.history())
    cluster.admin.patch("deployments", "default", "work", {"spec": {"replicas": 0}})
    down = await until(cluster, lambda: not cluster.store.items("", "pods"))
    await cluster.stop()
    listed = dict(writes.most_common(4))
    print(f"{pods} pods, {dialect}: up {up:.2f} s, down {down:.2f} s, writes {listed}")


def main() -> None:
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    dialect = PRESETS[sys.argv[2]] if len(sys.argv) > 2 else Preset.RESERVED_FOR_ANY_POD
    asyncio.run(measure(pods, dialect))


if __name__ == "__main__":
    main()
