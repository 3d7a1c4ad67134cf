"""``make bench``: what claimctl costs, in processes of their own so that they do not share memory.

* ``cache``: a list of pods of realistic size through client and informer cache, paged, where one in
  ten names a claim; CPU seconds (the making of the pages included) and peak memory.
* ``help``: how long ``claimctl --help`` takes from start to end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping

from claimctl.controller.caches import slim_pod
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from claimctl.wire.seams import Query, Response

FILLER = [{"name": f"VARIABLE_{number}", "value": "x" * 80} for number in range(25)]


def pod(number: int) -> bytes:
    """A pod of about 4 KB, of which claimctl wants a tenth."""
    claims = [{"name": "device", "resourceClaimName": "train"}] if number % 10 == 0 else []
    return json.dumps(
        {
            "metadata": {
                "name": f"pod-{number}",
                "namespace": "ml",
                "uid": f"00000000-0000-0000-0000-{number:012d}",
                "resourceVersion": str(number),
            },
            "spec": {
                "nodeName": f"node-{number % 500}",
                "resourceClaims": claims,
                "containers": [{"name": "main", "image": "example.com/train:1", "env": FILLER}],
            },
            "status": {
                "phase": "Running",
                "containerStatuses": [{"name": "main", "state": {"running": {}}}],
            },
        }
    ).encode()


class Pages:
    """A transport that makes pages of pods as they are asked for."""

    def __init__(self, pods: int) -> None:
        self.pods = pods
        self.sent = 0

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        asked = dict(query)
        start, limit = int(asked.get("continue", "0")), int(asked["limit"])
        end = min(start + limit, self.pods)
        token = str(end) if end < self.pods else ""
        items = b",".join(map(pod, range(start, end)))
        meta = json.dumps({"resourceVersion": "1", "continue": token}).encode()
        page = b'{"kind":"PodList","metadata":' + meta + b',"items":[' + items + b"]}"
        self.sent += len(page)
        return Response(200, {"content-type": "application/json"}, _once(page))


async def _once(page: bytes) -> AsyncIterator[bytes]:
    yield page


async def _cache(pods: int) -> dict[str, float]:
    transport = Pages(pods)
    kept: list[Pod] = []
    async for page in Client(transport, LoopClock()).pages(PODS):
        kept.extend(slim for slim in map(slim_pod, page.items) if slim is not None)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "pods": pods,
        "kept": len(kept),
        "megabytes_sent": round(transport.sent / 1e6, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_megabytes": round(usage.ru_maxrss / 1024),
    }


def _help() -> dict[str, float]:
    began = time.perf_counter()
    command = [sys.executable, "-m", "claimctl.cli.main", "--help"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {"seconds": round(time.perf_counter() - began, 2)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--only", choices=["cache", "help"])
    options = parser.parse_args()
    if options.only == "cache":
        print(json.dumps({"cache": asyncio.run(_cache(options.pods))}))
    elif options.only == "help":
        print(json.dumps({"help": _help()}))
    else:
        for name in ("cache", "help"):
            command = [sys.executable, "-m", "tests.bench", "--pods", str(options.pods)]
            subprocess.run([*command, "--only", name], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
