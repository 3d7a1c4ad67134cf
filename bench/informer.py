"""What it costs to have all pods of a cluster in memory: ours beside what a user would pick.

Every contender is a process of its own that lists the same pods, in pages of 500, from the same
loopback server and keeps them all; its CPU seconds and its peak memory are those of the whole
process, imports included. ``python -m bench.informer [--pods N] [--json]``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.pods import serve

LIMIT = 500


def claimctl(url: str) -> int:
    """Our informer, keeping every pod."""
    return asyncio.run(_informed(url, lambda pod: pod))


def claimctl_slim(url: str) -> int:
    """Our informer as the controller has it: pods that name no claim are dropped on arrival."""
    return asyncio.run(_informed(url, lambda pod: pod if pod.spec.resource_claims else None))


async def _informed(url: str, keep: Callable[[Any], Any]) -> int:
    from claimctl.kube.client import Client
    from claimctl.kube.clock import LoopClock
    from claimctl.kube.connection import Connection
    from claimctl.kube.informer import Informer
    from claimctl.kube.transport import HttpTransport
    from claimctl.wire.resources import PODS

    async with HttpTransport(Connection(url)) as transport:
        clock = LoopClock()
        informer = Informer(Client(transport, clock), PODS, clock, keep=keep)
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        task.cancel()
        return len(informer)


def json_dicts(url: str) -> int:
    """The standard library alone: urllib and json."""
    pods: list[Any] = []
    token = ""
    while True:
        query = f"limit={LIMIT}" + (f"&continue={token}" if token else "")
        with urllib.request.urlopen(f"{url}/api/v1/pods?{query}") as answer:
            page = json.load(answer)
        pods += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            return len(pods)


def official(url: str) -> int:
    """The official client's typed list."""
    import kubernetes.client as api

    core: Any = api.CoreV1Api(api.ApiClient(api.Configuration(host=url)))
    pods: list[Any] = []
    token = None
    while True:
        page = core.list_pod_for_all_namespaces(limit=LIMIT, _continue=token)
        pods += page.items
        token = page.metadata._continue
        if not token:
            return len(pods)


CONTENDERS: dict[str, Callable[[str], int]] = {
    "claimctl": claimctl,
    "claimctl, as the controller": claimctl_slim,
    "json dicts": json_dicts,
    "kubernetes client": official,
}


def measure(name: str, url: str) -> dict[str, Any]:
    """One contender in a process of its own."""
    command = [sys.executable, "-m", "bench.informer", "--one", name, "--url", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def one(name: str, url: str) -> None:
    """Be one contender and print what it took."""
    began = time.perf_counter()
    kept = CONTENDERS[name](url)
    result = {
        "name": name,
        "pods": kept,
        "cpu_seconds": round(time.process_time(), 2),
        "seconds": round(time.perf_counter() - began, 2),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    print(json.dumps(result))


@contextmanager
def server(pods: int) -> Iterator[tuple[str, int]]:
    """A server of that many pods in a process of its own: its URL, and the bytes of a list."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=serve, args=(pods, LIMIT, theirs), daemon=True)
    process.start()
    try:
        port, size = mine.recv()
        yield f"http://127.0.0.1:{port}", size
    finally:
        process.terminate()
        process.join()


def show(results: list[dict[str, Any]], pods: int, size: int) -> None:
    ours = results[0]
    print(f"{pods} pods, {size / 1e6:.1f} MB of JSON, pages of {LIMIT}, whole process")
    print(f"{'how':<28} {'kept':>6} {'CPU s':>7} {'':>6} {'peak MB':>8} {'':>6}")
    for each in results:
        cpu = each["cpu_seconds"] / ours["cpu_seconds"]
        rss = each["peak_rss_mb"] / ours["peak_rss_mb"]
        print(
            f"{each['name']:<28} {each['pods']:>6} {each['cpu_seconds']:>7.2f} x{cpu:<5.1f}"
            f" {each['peak_rss_mb']:>8.1f} x{rss:<5.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--one", choices=sorted(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.url)
        return
    with server(options.pods) as (url, size):
        results = [measure(name, url) for name in CONTENDERS]
    if options.json:
        print(json.dumps({"pods": options.pods, "bytes": size, "results": results}))
    else:
        show(results, options.pods, size)


if __name__ == "__main__":
    main()
