"""An embedded API server in a process of its own, with many claims that running pods share.

No component runs beside it: whatever happens to the objects, a controller does it.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from kube_in_process.cluster import SYSTEM_NAMESPACES, Cluster
from kube_in_process.http.listener import serve
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig
from kube_in_process.storage.store import Address, Author

from bench.churn import Churn
from bench.pods import pod as some_pod
from bench.workloads import JOBSETS, Maker, meta_of, objects_of, owner_of
from claimctl.commands.install.components import documents
from claimctl.kube.clock import LoopClock
from claimctl.wire.seams import Query, Response, Transport

CLASS = "gpu.example.com"
LEASES = "/apis/coordination.k8s.io/"
HISTORY = 20_000


@dataclass(frozen=True, slots=True)
class Size:
    """The number of claims, and of pods on each of them.

    Attributes:
        shared: whether the pods share the claims without being listed (KEP-5194): the list of each
            claim names its Deployment only.
        grouped: whether the pods share the claims through a PodGroup (KEP-5729): the list of each
            claim names only the group.
    """

    claims: int
    pods: int
    shared: bool = False
    grouped: bool = False
    made_by: Maker = "Deployment"

    @property
    def nodes(self) -> int:
        return max(self.claims * self.pods // 32, 1)


@dataclass(frozen=True, slots=True)
class Counts:
    """What the server has seen so far."""

    held: int
    """Claims that list a workload and whose ClaimReservation is Ready."""
    requests: int
    """Requests but for those to Leases."""
    writes: int


class ClaimsServer:
    """The parent's side of the server."""

    def __init__(self, kubeconfig: Path, pipe: Any) -> None:
        self.kubeconfig = kubeconfig
        self._pipe = pipe

    def counts(self) -> Counts:
        found: Counts = self._ask("counts")
        return found

    def requests(self) -> int:
        """Requests so far but for those to Leases. To ask costs the server hardly anything."""
        return self._made().total()

    def writes(self) -> int:
        """As ``requests``, but only those that may change something."""
        return _writes(self._made())

    def _made(self) -> Counter[str]:
        found: Counter[str] = self._ask("made")
        return found

    def churn(self, rate: float) -> None:
        """Let pods start, end and be force-deleted, ``rate`` times a second; 0 ends that.

        Raises:
            RuntimeError: it had ended by itself.
        """
        if failed := self._ask(rate):
            raise RuntimeError(failed)

    def wrong(self) -> tuple[int, list[str]]:
        """How many pods started, ended or were force-deleted, and which claims list others."""
        found: tuple[int, list[str]] = self._ask("wrong")
        return found

    def _ask(self, what: str | float) -> Any:
        self._pipe.send(what)
        return self._pipe.recv()


@contextmanager
def serving(size: Size) -> Iterator[ClaimsServer]:
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_main, args=(size, theirs), daemon=True)
    process.start()
    try:
        url = mine.recv()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kubeconfig")
            write_kubeconfig(path, Access(url))
            yield ClaimsServer(path, mine)
    finally:
        process.terminate()
        process.join()


# In the server's process


def _main(size: Size, pipe: Connection) -> None:
    asyncio.run(_serve(size, pipe))


class _Counting:
    """Counts requests by verb."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.seen: Counter[str] = Counter()

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if not path.startswith(LEASES):
            self.seen[method] += 1
        return await self._inner.send(method, path, query, headers, body)


def _writes(seen: Counter[str]) -> int:
    return sum(seen[verb] for verb in ("POST", "PUT", "PATCH", "DELETE"))


async def _serve(size: Size, pipe: Connection) -> None:
    options = ClusterOptions(preset=_dialect(size), history_limit=HISTORY)
    cluster = Cluster(options, LoopClock())
    gc.disable()  # it would look at all that is there for every few objects that are made
    _fill(cluster, size)
    gc.freeze()
    gc.enable()
    counting = _Counting(cluster.handler)
    server = await serve(counting, port=0)
    churn = Churn(cluster, size.claims, size.pods, partial(_pod, size))
    tasks: list[asyncio.Task[None]] = []

    def answer() -> None:
        match pipe.recv():
            case "counts":
                seen = counting.seen
                pipe.send(Counts(_held(cluster), seen.total(), _writes(seen)))
            case "made":
                pipe.send(counting.seen)
            case "wrong":
                pipe.send((churn.actions, churn.wrong()))
            case rate:
                failed = [str(each.exception()) for each in tasks if each.done()]
                while tasks:
                    tasks.pop().cancel()
                churn.settle()
                if rate:
                    tasks.append(asyncio.create_task(churn.run(rate)))
                pipe.send("; ".join(failed))

    asyncio.get_running_loop().add_reader(pipe.fileno(), answer)
    pipe.send(server.url)
    await asyncio.Event().wait()


def _dialect(size: Size) -> Preset:
    if size.grouped:
        return Preset.POD_GROUPS
    return Preset.RESERVED_FOR_ANY_POD if size.shared else Preset.PLAIN


def _held(cluster: Cluster) -> int:
    ready = {
        each["spec"]["resourceClaimName"]
        for each in cluster.admin.list("claimreservations")
        if any(
            condition["type"] == "Reserved" and condition["status"] == "True"
            for condition in each.get("status", {}).get("conditions", ())
        )
    }
    return sum(
        claim["metadata"]["name"] in ready
        and claim["status"]["reservedFor"][-1]["resource"] != "pods"
        for claim in cluster.admin.list("resourceclaims")
    )


def _fill(cluster: Cluster, size: Size) -> None:
    for name in (*SYSTEM_NAMESPACES, "claimctl-system", "work"):
        cluster.admin.create("namespaces", {"metadata": {"name": name}})
    for definition in (*documents("crds"), *([JOBSETS] if size.made_by == "JobSet" else [])):
        cluster.admin.create("customresourcedefinitions", definition)
    for number in range(size.nodes):
        _put(cluster, "", "nodes", _node(number))
    for number in range(size.claims):
        pods = [_pod(size, number, place) for place in range(size.pods)]
        for each in pods:
            _put(cluster, "", "pods", each)
        if size.grouped:
            _put(cluster, "scheduling.k8s.io", "podgroups", _group(number))
        _put(cluster, "resource.k8s.io", "resourceclaims", _claim_of(size, number, pods))
        for group, plural, body in objects_of(size.made_by, number, size.pods):
            _put(cluster, group, plural, body)


def _put(cluster: Cluster, group: str, plural: str, body: dict[str, Any]) -> None:
    meta = body["metadata"]
    address = Address(group, plural, meta.get("namespace", ""), meta["name"])
    cluster.store.put(address, body, Author("bench", "create"))


def _node(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    meta = {**meta_of(name), "labels": {"kubernetes.io/hostname": name}}
    del meta["namespace"]
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": meta,
        "spec": {},
        "status": {"nodeInfo": {"bootID": f"boot-{number}"}},
    }


def _pod(size: Size, claim: int, place: int) -> dict[str, Any]:
    number = claim * size.pods + place
    body = some_pod(number)
    name = f"train-{claim}-{place}"
    body["metadata"] |= {"name": name, "namespace": "work", "uid": f"uid-{name}-{'0' * 20}"}
    body["metadata"]["ownerReferences"] = [owner_of(size.made_by, claim, place)]
    body["metadata"]["labels"] |= {"app": f"train-{claim}"}
    body["spec"]["nodeName"] = f"node-{number % size.nodes}"
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"slice-{claim}"}]
    if size.grouped:
        body["spec"]["schedulingGroup"] = {"podGroupName": f"train-{claim}"}
    return {"kind": "Pod", "apiVersion": "v1", **body}


def _claim(number: int, pods: list[dict[str, Any]]) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": CLASS, "allocationMode": "ExactCount"}}
    request["exactly"] |= {"count": 1}  # type: ignore[operator]  # a plain document
    result = {"request": "gpu", "driver": CLASS, "pool": "pool", "device": f"device-{number}"}
    listed = [
        {"resource": "pods", "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]}
        for each in pods
    ]
    finalizers = ["resource.kubernetes.io/delete-protection"]
    return {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": meta_of(f"slice-{number}", finalizers=finalizers),
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": listed},
    }


def _claim_of(size: Size, number: int, pods: list[dict[str, Any]]) -> dict[str, Any]:
    if size.shared:
        return _shared(_claim(number, []), number)
    claim = _claim(number, [] if size.grouped else pods)
    if size.grouped:
        name = f"train-{number}"
        group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": name}
        claim["status"]["reservedFor"] = [{**group, "uid": f"uid-group-{number}"}]
    return claim


def _group(number: int) -> dict[str, Any]:
    shared = [{"name": "gpu", "resourceClaimName": f"slice-{number}"}]
    return {
        "kind": "PodGroup",
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "metadata": {**meta_of(f"train-{number}"), "uid": f"uid-group-{number}"},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": shared},
    }


def _shared(claim: dict[str, Any], number: int) -> dict[str, Any]:
    """The claim as one that was created for its Deployment and that any pod of it may use."""
    name = f"train-{number}"
    workload = {"apiGroup": "apps", "resource": "deployments", "name": name, "uid": f"uid-{name}"}
    claim["spec"]["reservedFor"] = workload
    claim["status"]["allocation"]["reservedForAnyPod"] = True
    claim["status"]["reservedFor"] = [workload]
    return claim
