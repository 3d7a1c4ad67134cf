"""A DRA driver for the nodes of one cluster, as a program.

    python -m kube_in_process.real.nodes.driver SETTINGS

It serves the kubelets of all nodes in one process. It publishes the devices of each node after the
kubelet has registered it, again whenever the kubelet has deleted them, and anew when the file of
the node's slice has another generation. It appends each call with its times to a file. The file
``knobs`` makes it slow, makes it fail, or gives it other habits (``drivers.Knobs``).
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from kube_in_process.real.nodes.messages import DRA, REGISTRATION, message

SERVED = "v1.DRAPlugin"
_THREADS = 32
_LOOK_SECONDS = 0.5
_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Node:
    """A node, its kubelet's root folder, and the file of the ResourceSlice with its devices."""

    name: str
    root: Path
    offered: Path

    def slice(self) -> dict[str, Any]:
        """The ResourceSlice with the devices that the node offers now."""
        return dict(json.loads(self.offered.read_text()))


@dataclass(frozen=True, slots=True)
class NodeApi:
    """The API server, for the few requests of a driver."""

    url: str
    token: str
    certificate: str
    resource_api: str

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request; returns the status and the answer.

        Raises:
            OSError: there is no answer.
        """
        wanted = urllib.request.Request(
            f"{self.url}/apis/{self.resource_api}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "authorization": f"Bearer {self.token}",
                "content-type": "application/json",
            },
        )
        trust = ssl.create_default_context(cadata=self.certificate)
        try:
            with urllib.request.urlopen(wanted, timeout=_TIMEOUT_SECONDS, context=trust) as answer:
                return int(answer.status), json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {}


class NodeDriver:
    """The driver on all nodes."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.name: str = settings["name"]
        self.api = NodeApi(**settings["api"])
        self.nodes = [
            Node(each["name"], Path(each["root"]), Path(each["slice"]))
            for each in settings["nodes"]
        ]
        self._calls, self._knobs = Path(settings["calls"]), Path(settings["knobs"])
        self._registered: set[str] = set()
        self._writing = threading.Lock()
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        """By UID of a claim: its calls are answered one after the other."""

    def serve(self) -> list[grpc.Server]:
        """Begin to serve every node."""
        return [self._server(node) for node in self.nodes]

    def keep_published(self) -> None:
        """Publish the slices of registered nodes that are missing or old, for ever."""
        while True:
            for node in self.nodes:
                if node.name in self._registered:
                    with suppress(OSError):
                        self._publish(node)
            time.sleep(_LOOK_SECONDS)

    def _publish(self, node: Node) -> None:
        wanted = node.slice()
        path = f"resourceslices/{wanted['metadata']['name']}"
        status, present = self.api.request("GET", path)
        if status == 404:
            self.api.request("POST", "resourceslices", wanted)
        elif status == 200 and _generation(present) != _generation(wanted):
            present["spec"] = wanted["spec"]
            self.api.request("PUT", path, present)

    def _server(self, node: Node) -> grpc.Server:
        sockets = node.root / "plugins" / self.name / "dra.sock"
        registration = node.root / "plugins_registry" / f"{self.name}-reg.sock"
        for path in (sockets, registration):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        server = grpc.server(ThreadPoolExecutor(_THREADS))
        server.add_generic_rpc_handlers(
            (
                _service(
                    REGISTRATION,
                    "Registration",
                    GetInfo=("InfoRequest", lambda asked: self._info(sockets)),
                    NotifyRegistrationStatus=(
                        "RegistrationStatus",
                        lambda asked: self._note(node, asked),
                    ),
                ),
                _service(
                    DRA,
                    "DRAPlugin",
                    NodePrepareResources=(
                        "NodePrepareResourcesRequest",
                        lambda asked: self._each(node, "prepare", asked),
                    ),
                    NodeUnprepareResources=(
                        "NodeUnprepareResourcesRequest",
                        lambda asked: self._each(node, "unprepare", asked),
                    ),
                ),
            )
        )
        server.add_insecure_port(f"unix://{sockets}")
        server.add_insecure_port(f"unix://{registration}")
        server.start()
        return server

    def _info(self, endpoint: Path) -> Any:
        return message(REGISTRATION, "PluginInfo")(
            type="DRAPlugin",
            name=self.name,
            endpoint=str(endpoint),
            supported_versions=[SERVED],
        )

    def _note(self, node: Node, asked: Any) -> Any:
        if asked.plugin_registered:
            self._registered.add(node.name)
        else:
            print(f"{node.name} refuses the driver: {asked.error}", flush=True)
        return message(REGISTRATION, "RegistrationStatusResponse")()

    def _each(self, node: Node, kind: str, asked: Any) -> Any:
        """Answer a call for each of its claims, and note it."""
        answer = message(DRA, f"Node{kind.capitalize()}ResourcesResponse")()
        for claim in asked.claims:
            began = time.time()
            # a kubelet may ask to unprepare while it still waits for the answer to a prepare
            with self._turns[claim.uid]:
                knobs = self._read_knobs()
                time.sleep(float(knobs.get(f"{kind}_seconds", 0.0)))
                error = str(knobs.get(f"{kind}_error", ""))
                version = 0
                devices: list[dict[str, Any]] = []
                if kind == "prepare" and not error:
                    wants_one_pod = bool(knobs.get("wants_one_pod"))
                    error, version, devices = self._allocated(claim, node, wants_one_pod)
                given = answer.claims[claim.uid]
                given.error = error
                for device in devices:
                    given.devices.add(**device)
                names = [f"{each['pool_name']}/{each['device_name']}" for each in devices]
                self._write(
                    {
                        "kind": kind,
                        "node": node.name,
                        "claim": claim.uid,
                        "name": f"{claim.namespace}/{claim.name}",
                        "devices": names,
                        "began": began,
                        "ended": time.time(),
                        "error": error,
                        "version": version,
                    }
                )
        return answer

    def _read_knobs(self) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            return dict(json.loads(self._knobs.read_text()))
        return {}

    def _allocated(
        self, claim: Any, node: Node, wants_one_pod: bool
    ) -> tuple[str, int, list[dict[str, Any]]]:
        """Why a claim cannot be prepared, or '', its version, and its devices of this driver."""
        named = f"claim {claim.namespace}/{claim.name}"
        try:
            status, read = self.api.request(
                "GET", f"namespaces/{claim.namespace}/resourceclaims/{claim.name}"
            )
        except OSError as error:
            return f"the API server gives no answer: {error}", 0, []
        if status != 200 or read["metadata"]["uid"] != claim.uid:
            return f"{named} ({claim.uid}) does not exist", 0, []
        version = int(read["metadata"]["resourceVersion"])
        allocation = (read.get("status") or {}).get("allocation")
        if allocation is None:
            return f"{named} is not allocated", version, []
        listed = read["status"].get("reservedFor") or []
        if wants_one_pod and (refusal := _no_one_pod(listed)):
            return refusal, version, []
        devices = [
            {
                "request_names": [each["request"]],
                "pool_name": each["pool"],
                "device_name": each["device"],
            }
            for each in allocation["devices"]["results"]
            if each["driver"] == self.name
        ]
        offered = {each["name"] for each in node.slice()["spec"]["devices"]}
        for device in devices:
            if device["device_name"] not in offered:
                name = device["device_name"]
                return f"prepare failed: requested device is not allocatable: {name}", version, []
        return "", version, devices

    def _write(self, call: dict[str, Any]) -> None:
        line = f"{json.dumps(call)}\n".encode()
        with self._writing, open(self._calls, "ab", buffering=0) as file:
            file.write(line)


def _generation(body: Mapping[str, Any]) -> int:
    return int(body["spec"]["pool"]["generation"])


def _no_one_pod(listed: Sequence[Mapping[str, Any]]) -> str:
    """What drivers that want one pod in a claim's list say of another list; '' if they take it."""
    if len(listed) != 1:
        return f"driver only supports one pod per claim, got {len(listed)}"
    (only,) = listed
    if only["resource"] != "pods" or only.get("apiGroup"):
        return f"driver only supports Pods, unsupported reference {only['resource']}"
    return ""


def _service(
    package: str, name: str, **methods: tuple[str, Callable[[Any], Any]]
) -> grpc.GenericRpcHandler:
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        method: grpc.unary_unary_rpc_method_handler(
            lambda asked, _, answer=answer: answer(asked),
            request_deserializer=message(package, request).FromString,
            response_serializer=lambda answer: answer.SerializeToString(),
        )
        for method, (request, answer) in methods.items()
    }
    return grpc.method_handlers_generic_handler(f"{package}.{name}", handlers)


def main(settings: str) -> None:
    driver = NodeDriver(json.loads(Path(settings).read_text()))
    servers = driver.serve()
    threading.Thread(target=driver.keep_published, daemon=True).start()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    for server in servers:
        server.stop(None)
    for node in driver.nodes:
        # without its registration socket, the kubelet takes the driver for gone
        (node.root / "plugins_registry" / f"{driver.name}-reg.sock").unlink(missing_ok=True)
    os._exit(0)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main(sys.argv[1])
