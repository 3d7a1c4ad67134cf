"""Pods as real clusters have them, some 4 kB of JSON each, and a server of them over TLS."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kube_in_process.serving.kubeconfig import Access, write_kubeconfig
from kube_in_process.serving.tls import loopback_identity

VERSION = 1_000_000
"""The version of the list."""
_TIME = "2026-01-02T03:04:05Z"


def pod(number: int) -> dict[str, Any]:
    """One of a Deployment of thousands, bound and running; one in four names a claim."""
    name = f"web-7d4b9c6f5-{number:05}"
    claims = [{"name": "gpu", "resourceClaimName": f"claim-{number % 40}"}] * (number % 4 == 0)
    return {
        "metadata": _metadata(name, number),
        "spec": {
            "nodeName": f"node-{number % 100:03}",
            "serviceAccountName": "default",
            "containers": [_container(index) for index in range(2)],
            "volumes": [{"name": f"v{index}", "emptyDir": {}} for index in range(3)],
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
                for key in ("not-ready", "unreachable")
            ],
            **({"resourceClaims": claims} if claims else {}),
        },
        "status": _status(number),
    }


@dataclass(frozen=True, slots=True)
class Load:
    """What a server has: pods, and how many events a watch brings at once."""

    pods: int
    events: int = 0


def _list(start: int, end: int, count: int) -> bytes:
    meta: dict[str, Any] = {"resourceVersion": str(VERSION)}
    if end < count:
        meta |= {"continue": str(end), "remainingItemCount": count - end}
    items = [pod(number) for number in range(start, end)]
    listing = {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items}
    return json.dumps(listing, separators=(",", ":")).encode()


@cache
def _page(start: int, limit: int, count: int) -> bytes:
    return _list(start, min(start + limit, count) if limit else count, count)


def event(number: int, pods: int) -> bytes:
    """A MODIFIED event, as a chunk of a stream.

    19 of 20 are heartbeats: a probe's time, a metric in an annotation. In the others a container
    ends or starts.
    """
    changed = pod(number % pods)
    meta, status = changed["metadata"], changed["status"]
    meta["resourceVersion"] = str(VERSION + 1 + number)
    meta["annotations"]["example.com/load"] = str(number)
    for each in status["conditions"]:
        each["lastProbeTime"] = f"2026-01-02T{number // 3600 % 24:02}:{number // 60 % 60:02}:00Z"
    if number % 20 == 19:
        status["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 0}}
    body = {"type": "MODIFIED", "object": {"apiVersion": "v1", "kind": "Pod", **changed}}
    line = json.dumps(body, separators=(",", ":")).encode() + b"\n"
    return b"%x\r\n%s\r\n" % (len(line), line)


@contextmanager
def serving(load: Load) -> Iterator[Path]:
    """A server with TLS in a process of its own: the path of its kubeconfig."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(load, theirs), daemon=True)
    process.start()
    try:
        access = mine.recv()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kubeconfig")
            write_kubeconfig(path, access)
            yield path
    finally:
        process.terminate()
        process.join()


def _serve(load: Load, tell: Connection) -> None:
    """Serve for ever on a free port of the loopback."""
    events = [event(number, load.pods) for number in range(load.events)]
    for start in range(0, load.pods, 500):
        _page(start, 500, load.pods)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 0

        def do_GET(self) -> None:
            query = {key: found[0] for key, found in parse_qs(urlsplit(self.path).query).items()}
            if "watch" in query:
                self._watch()
                return
            start, limit = int(query.get("continue") or 0), int(query.get("limit", "0"))
            listed = "version" not in self.path
            body = _page(start, limit, load.pods) if listed else b'{"gitVersion": "v1.35.0"}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _watch(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for each in events:
                self.wfile.write(each)
            self.connection.recv(1)  # until the client goes away
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    class PodsServer(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A contender that has what it wanted goes away without a word."""

    identity = loopback_identity()
    server = PodsServer(("127.0.0.1", 0), Handler)
    server.socket = identity.context.wrap_socket(server.socket, server_side=True)
    url = f"https://127.0.0.1:{server.server_address[1]}"
    tell.send(Access(url, "some-token", identity.authority))
    server.serve_forever()


def _metadata(name: str, number: int) -> dict[str, Any]:
    fields: dict[str, Any] = {f"f:field{index}": {"f:inner": {}, ".": {}} for index in range(40)}
    return {
        "name": name,
        "generateName": "web-7d4b9c6f5-",
        "namespace": f"team-{number % 20}",
        "uid": f"6f1d2c3b-0000-4000-8000-{number:012}",
        "resourceVersion": str(500000 + number),
        "creationTimestamp": _TIME,
        "labels": {"app": "web", "pod-template-hash": "7d4b9c6f5", "tier": "front"},
        "annotations": {"prometheus.io/scrape": "true", "example.com/config": "x" * 200},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web-7d4b9c6f5",
                "uid": "aaaaaaaa-0000-4000-8000-000000000000",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [
            {
                "manager": manager,
                "operation": "Update",
                "apiVersion": "v1",
                "time": _TIME,
                "fieldsType": "FieldsV1",
                "fieldsV1": fields,
            }
            for manager in ("kube-controller-manager", "kubelet")
        ],
    }


def _container(index: int) -> dict[str, Any]:
    return {
        "name": f"c{index}",
        "image": f"registry.example.com/team/image-{index}:v1.2.3",
        "env": [{"name": f"VARIABLE_{n}", "value": f"value-{n}"} for n in range(10)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": "v0", "mountPath": "/data"}],
    }


def _status(number: int) -> dict[str, Any]:
    return {
        "phase": "Running",
        "conditions": [
            {"type": type_, "status": "True", "lastTransitionTime": _TIME}
            for type_ in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "podIP": f"10.{number // 65536}.{number // 256 % 256}.{number % 256}",
        "containerStatuses": [
            {
                "name": f"c{index}",
                "ready": True,
                "restartCount": 0,
                "image": f"registry.example.com/team/image-{index}:v1.2.3",
                "imageID": f"sha256:{'0' * 64}",
                "state": {"running": {"startedAt": _TIME}},
            }
            for index in range(2)
        ],
    }
