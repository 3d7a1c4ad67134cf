"""What a user would follow pods with, claimctl among them. Each is a process of its own.

``python -m bench.contenders list|watch NAME KUBECONFIG COUNT`` prints one JSON object. ``list``
keeps all pods, and its figures are those of the whole process, imports included. ``watch`` lists
the pods first, then counts the CPU seconds until it has seen COUNT events.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

LIMIT = 500
PATH = "/api/v1/pods"
Meter = Callable[[], None]
"""Called when the pods are listed, so that the CPU time of the watch begins."""


# The bytes alone: what any client has to do


def bytes_alone(kubeconfig: str) -> int:
    """The standard library reads the bytes of each page and forgets them."""
    with _http(kubeconfig) as get:
        token, pages = b"", 0
        while True:
            body = get(f"{PATH}?limit={LIMIT}&continue={token.decode()}").read()
            token, pages = _token(body), pages + 1
            if not token:
                return pages


def bytes_aiohttp(kubeconfig: str) -> int:
    """claimctl's transport reads the bytes of each page and forgets them."""
    from claimctl.kube.transport import HttpTransport
    from claimctl.login.connect import load_connection

    async def read() -> int:
        async with HttpTransport(load_connection(kubeconfig)) as transport:
            token, pages = b"", 0
            while True:
                query = (("limit", str(LIMIT)), ("continue", token.decode()))
                answer = await transport.send("GET", PATH, query, {}, None)
                body = b"".join([chunk async for chunk in answer.body])
                token, pages = _token(body), pages + 1
                if not token:
                    return pages

    return asyncio.run(read())


# claimctl


def claimctl_all(kubeconfig: str) -> int:
    """claimctl's informer, as if every pod named a claim."""
    from msgspec.structs import replace

    from claimctl.reservation.facts.slim_pods import slim_pod
    from claimctl.wire.pods import PodResourceClaim

    claims = (PodResourceClaim(name="gpu", resource_claim_name="slice"),)

    def keep(pod: Any) -> Any:
        return slim_pod(replace(pod, spec=replace(pod.spec, resource_claims=claims)))

    return asyncio.run(_informed(kubeconfig, keep))


def claimctl(kubeconfig: str) -> int:
    """claimctl's informer as the controller has it: it drops pods that name no claim."""
    from claimctl.reservation.facts.slim_pods import slim_pod

    return asyncio.run(_informed(kubeconfig, slim_pod))


async def _informed(kubeconfig: str, keep: Callable[[Any], Any]) -> int:
    informer, close = await _informer(kubeconfig, keep)
    task = asyncio.create_task(informer.run())
    await informer.wait_synced()
    kept = len(informer)
    task.cancel()
    await close()
    return kept


async def _informer(
    kubeconfig: str, keep: Callable[[Any], Any]
) -> tuple[Any, Callable[[], Awaitable[None]]]:
    from claimctl.kube.client import Client
    from claimctl.kube.clock import LoopClock
    from claimctl.kube.informer import Informer
    from claimctl.kube.transport import HttpTransport
    from claimctl.login.connect import load_connection
    from claimctl.wire.resources import PODS

    transport = await HttpTransport(load_connection(kubeconfig)).__aenter__()
    clock = LoopClock()
    informer = Informer(Client(transport, clock), PODS, clock, keep=keep)

    async def close() -> None:
        await transport.__aexit__(None, None, None)

    return informer, close


def watch_claimctl(kubeconfig: str, count: int, listed: Meter) -> int:
    from claimctl.reservation.facts.slim_pods import slim_pod

    async def watch() -> int:
        informer, close = await _informer(kubeconfig, slim_pod)
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        listed()
        last = int(informer.version) + count
        while int(informer.version or 0) < last:  # noqa: ASYNC110 - no handler hears of heartbeats
            await asyncio.sleep(0.02)
        task.cancel()
        await close()
        return count

    return asyncio.run(watch())


# What a user would pick instead


def json_dicts(kubeconfig: str) -> int:
    """The standard library: http.client and json."""
    return len(_json_dicts(kubeconfig))


def _json_dicts(kubeconfig: str) -> dict[str, Any]:
    pods: dict[str, Any] = {}
    with _http(kubeconfig) as get:
        token = ""
        while True:
            page = json.loads(get(f"{PATH}?limit={LIMIT}&continue={token}").read())
            pods.update((each["metadata"]["uid"], each) for each in page["items"])
            token = page["metadata"].get("continue", "")
            if not token:
                return pods


def watch_json(kubeconfig: str, count: int, listed: Meter) -> int:
    pods = _json_dicts(kubeconfig)
    listed()
    with _http(kubeconfig) as get:
        answer = get(f"{PATH}?watch=true")
        for _ in range(count):
            event = json.loads(answer.readline())
            pods[event["object"]["metadata"]["uid"]] = event["object"]
    return count


def _core(kubeconfig: str) -> Any:
    config: Any = import_module("kubernetes.config")
    api: Any = import_module("kubernetes.client")
    config.load_kube_config(kubeconfig)
    return api.CoreV1Api()


def _shared_informer(kubeconfig: str) -> Any:
    module: Any = import_module("kubernetes.informer")
    return module.SharedInformer(_core(kubeconfig).list_pod_for_all_namespaces)


def shared_informer(kubeconfig: str) -> int:
    """The official client's SharedInformer."""
    informer = _shared_informer(kubeconfig)
    informer.start()
    while not (kept := len(informer.cache.list_keys())):
        time.sleep(0.02)
    return kept


def watch_shared_informer(kubeconfig: str, count: int, listed: Meter) -> int:
    informer = _shared_informer(kubeconfig)
    seen = threading.Semaphore(0)
    informer.add_event_handler("MODIFIED", lambda _: seen.release())
    informer.start()
    while not informer.cache.list_keys():
        time.sleep(0.02)
    listed()
    for _ in range(count):
        seen.acquire()
    return count


def _lightkube(kubeconfig: str) -> tuple[Any, Any]:
    lightkube: Any = import_module("lightkube")
    core: Any = import_module("lightkube.resources.core_v1")
    return lightkube.Client(lightkube.KubeConfig.from_file(kubeconfig)), core.Pod


def lightkube(kubeconfig: str) -> int:
    """lightkube's list, in pages."""
    client, pod = _lightkube(kubeconfig)
    return len(
        {each.metadata.uid: each for each in client.list(pod, namespace="*", chunk_size=LIMIT)}
    )


def watch_lightkube(kubeconfig: str, count: int, listed: Meter) -> int:
    client, pod = _lightkube(kubeconfig)
    pods = {each.metadata.uid: each for each in client.list(pod, namespace="*", chunk_size=LIMIT)}
    listed()
    for number, (_, each) in enumerate(client.watch(pod, namespace="*"), 1):
        pods[each.metadata.uid] = each
        if number == count:
            break
    return count


def kr8s(kubeconfig: str) -> int:
    """kr8s's get; it lists in pages of 100."""
    api: Any = import_module("kr8s").api(kubeconfig=kubeconfig)
    pod: Any = import_module("kr8s.objects").Pod
    return len({each.metadata.uid: each for each in api.get(pod, namespace="all")})


def watch_kr8s(kubeconfig: str, count: int, listed: Meter) -> int:
    api: Any = import_module("kr8s").api(kubeconfig=kubeconfig)
    pod: Any = import_module("kr8s.objects").Pod
    pods: dict[str, Any] = {}
    listed()
    for number, (_, each) in enumerate(api.watch(pod, namespace="all", since="1000000"), 1):
        pods[each.metadata.uid] = each
        if number == count:
            break
    return count


LISTS: dict[str, Callable[[str], int]] = {
    "claimctl": claimctl,
    "claimctl-all": claimctl_all,
    "bytes": bytes_alone,
    "bytes-aiohttp": bytes_aiohttp,
    "json": json_dicts,
    "SharedInformer": shared_informer,
    "lightkube": lightkube,
    "kr8s": kr8s,
}

WATCHES: dict[str, Callable[[str, int, Meter], int]] = {
    "claimctl": watch_claimctl,
    "json": watch_json,
    "SharedInformer": watch_shared_informer,
    "lightkube": watch_lightkube,
    "kr8s": watch_kr8s,
}


# Helpers


@contextmanager
def _http(kubeconfig: str) -> Iterator[Callable[[str], Any]]:
    """GET over one connection of the standard library."""
    import base64
    import ssl
    from http.client import HTTPSConnection

    text = Path(kubeconfig).read_text()
    found = re.search(r"certificate-authority-data: (\S+)", text)
    server = re.search(r"server: https://([^:\s]+):(\d+)", text)
    assert found is not None
    assert server is not None
    authority = base64.b64decode(found[1]).decode()
    connection = HTTPSConnection(
        server[1], int(server[2]), context=ssl.create_default_context(cadata=authority)
    )

    def get(path: str) -> Any:
        connection.request("GET", path)
        return connection.getresponse()

    try:
        yield get
    finally:
        connection.close()


_TOKEN = re.compile(rb'"continue":"([^"]*)"')


def _token(body: bytes) -> bytes:
    """The continue token of a page; the list's metadata come before its items."""
    found = _TOKEN.search(body, 0, 300)
    return found[1] if found else b""


def peak_megabytes() -> float:
    """The most memory that this program had. ``ru_maxrss`` also counts that of the parent."""
    try:
        found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        found = None
    kilobytes = int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / 1024


def main(verb: str, name: str, kubeconfig: str, count: int) -> None:
    """Be one contender, and print what it took."""
    began = 0.0

    def listed() -> None:
        nonlocal began
        began = time.process_time()

    kept = LISTS[name](kubeconfig) if verb == "list" else WATCHES[name](kubeconfig, count, listed)
    taken = time.process_time() - began
    print(json.dumps({"kept": kept, "cpu": taken, "memory": peak_megabytes()}), flush=True)
    os._exit(0)  # some contenders have threads that never end


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
