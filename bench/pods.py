"""Pods as real clusters have them, some 4 kB of JSON each, and a server that lists them."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import parse_qs, urlsplit

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


def pages(count: int, limit: int) -> list[bytes]:
    """The answers to a paged list of ``count`` pods."""
    made: list[bytes] = []
    for start in range(0, count, limit):
        end = min(start + limit, count)
        meta: dict[str, Any] = {"resourceVersion": "1000000"}
        if end < count:
            meta |= {"continue": str(len(made) + 1), "remainingItemCount": count - end}
        items = [pod(number) for number in range(start, end)]
        listing = {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items}
        made.append(json.dumps(listing, separators=(",", ":")).encode())
    return made


def serve(count: int, limit: int, tell: Connection) -> None:
    """Serve the pages on a free port of the loopback for ever; the first word is the port."""
    made = pages(count, limit)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            body = b"" if "watch" in query else made[int(query.get("continue", ["0"])[0])]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A contender that has what it wanted goes away without a word."""

    server = Server(("127.0.0.1", 0), Handler)
    tell.send((server.server_address[1], sum(len(page) for page in made)))
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
