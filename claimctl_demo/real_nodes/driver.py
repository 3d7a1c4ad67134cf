"""A DRA driver for the nodes of one cluster, as a program.

    python -m claimctl_demo.real_nodes.driver SETTINGS

It serves the kubelets of all nodes in one process, publishes the devices of each node after the
kubelet has registered it, and again whenever the kubelet has deleted them. It appends each call
with its times to a file. The file ``knobs`` makes it slow or makes it fail (``drivers.Knobs``).
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
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from claimctl_demo.real_nodes.messages import DRA, REGISTRATION, message

SERVED = "v1.DRAPlugin"
_THREADS = 32
_LOOK_SECONDS = 1.0
_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Node:
    """A node, its kubelet's root folder, and the body of the ResourceSlice with its devices."""

    name: str
    root: Path
    slice: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Api:
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


class Driver:
    """The driver on all nodes."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.name: str = settings["name"]
        self.api = Api(**settings["api"])
        self.nodes = [
            Node(each["name"], Path(each["root"]), each["slice"]) for each in settings["nodes"]
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
        """Publish the devices of registered nodes whose ResourceSlice is missing, for ever."""
        while True:
            for node in self.nodes:
                if node.name in self._registered:
                    with suppress(OSError):
                        self._publish(node)
            time.sleep(_LOOK_SECONDS)

    def _publish(self, node: Node) -> None:
        name = node.slice["metadata"]["name"]
        if self.api.request("GET", f"resourceslices/{name}")[0] == 404:
            self.api.request("POST", "resourceslices", node.slice)

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
                    error, version, devices = self._allocated(claim)
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

    def _allocated(self, claim: Any) -> tuple[str, int, list[dict[str, Any]]]:
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
        devices = [
            {
                "request_names": [each["request"]],
                "pool_name": each["pool"],
                "device_name": each["device"],
            }
            for each in allocation["devices"]["results"]
            if each["driver"] == self.name
        ]
        return "", version, devices

    def _write(self, call: dict[str, Any]) -> None:
        line = f"{json.dumps(call)}\n".encode()
        with self._writing, open(self._calls, "ab", buffering=0) as file:
            file.write(line)


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
    driver = Driver(json.loads(Path(settings).read_text()))
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
