"""A DRA driver for the nodes of one cluster, as a program.

    python -m kube_in_process.real.nodes.driver SETTINGS

It serves the kubelets of all nodes in one process. It publishes the devices of each node after the
kubelet has registered it, again whenever the kubelet has deleted them, and anew when the file of
the node's slice has changed. It appends each call with its times to a file. The file ``habits``
gives it habits (``kube_in_process.habits``).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc

from kube_in_process.habits import deciding
from kube_in_process.habits.habit import PREPARE, UNPREPARE
from kube_in_process.real.nodes.answers import Answers, Node, NodeApi
from kube_in_process.real.nodes.messages import DRA, REGISTRATION, message

SERVED = "v1.DRAPlugin"
_THREADS = 32
_LOOK_SECONDS = 0.5


class NodeDriver:
    """The driver on all nodes."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.name: str = settings["name"]
        self.nodes = [
            Node(node["name"], Path(node["root"]), Path(node["slice"]))
            for node in settings["nodes"]
        ]
        names = ("calls", "habits", "checkpoint", "followed")
        files = {name: Path(settings[name]) for name in names}
        self._answers = Answers(
            self.name, NodeApi(**settings["api"]), files["habits"], files["checkpoint"]
        )
        self._calls, self._followed = files["calls"], files["followed"]
        self._servers: dict[str, grpc.Server] = {}
        """By node: what serves it. A driver that is away from a node does not serve it."""
        self._registered: set[str] = set()
        self._writing = threading.Lock()
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        """By UID of a claim: its calls are answered one after the other."""

    def serve(self) -> None:
        """Begin to serve every node where it is not away."""
        for node in self.nodes:
            self._be_there(node)

    def keep_up(self) -> None:
        """Go away and come back as the habits say, and publish what is missing or old, for ever.

        After each round, a file has the habits that it followed.
        """
        while True:
            habits = self._answers.habits.read_text()
            for node in self.nodes:
                self._be_there(node)
                if node.name in self._registered:
                    with suppress(OSError):
                        self._answers.publish(node)
            self._followed.write_text(habits)
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        """Stop to serve every node."""
        for node in self.nodes:
            self._leave(node)

    def _be_there(self, node: Node) -> None:
        """Serve a node, unless the driver is away from it."""
        if not deciding.is_there(self._answers.on(node)):
            self._leave(node)
        elif node.name not in self._servers:
            self._answers.begin(node)
            self._servers[node.name] = self._server(node)

    def _leave(self, node: Node) -> None:
        server = self._servers.pop(node.name, None)
        if server is not None:
            server.stop(None)
            self._registered.discard(node.name)
            # without its registration socket, the kubelet takes the driver for gone
            self._registration(node).unlink(missing_ok=True)

    def _registration(self, node: Node) -> Path:
        return node.root / "plugins_registry" / f"{self.name}-reg.sock"

    def _server(self, node: Node) -> grpc.Server:
        sockets = node.root / "plugins" / self.name / "dra.sock"
        registration = self._registration(node)
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
                        lambda asked: self._each(node, PREPARE, asked),
                    ),
                    NodeUnprepareResources=(
                        "NodeUnprepareResourcesRequest",
                        lambda asked: self._each(node, UNPREPARE, asked),
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

    def _each(self, node: Node, verb: str, asked: Any) -> Any:
        """Answer a call for each of its claims, and note it."""
        answer = message(DRA, f"Node{verb.capitalize()}ResourcesResponse")()
        for claim in asked.claims:
            began = time.time()
            # a kubelet may ask to unprepare while it still waits for the answer to a prepare
            with self._turns[claim.uid]:
                named = (claim.namespace, claim.name, claim.uid)
                error, version = "", 0
                devices: list[dict[str, Any]] = []
                if verb == PREPARE:
                    error, version, devices = self._answers.prepare(node, *named)
                else:
                    error = self._answers.unprepare(node, *named)
                given = answer.claims[claim.uid]
                given.error = error
                for device in devices:
                    given.devices.add(**device)
                names = [f"{device['pool_name']}/{device['device_name']}" for device in devices]
                self._write(
                    {
                        "verb": verb,
                        "claim": f"{claim.namespace}/{claim.name}",
                        "uid": claim.uid,
                        "node": node.name,
                        "asked": began,
                        "time": time.time(),
                        "error": error,
                        "devices": names,
                        "version": version,
                    }
                )
        return answer

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
    driver = NodeDriver(json.loads(Path(settings).read_text()))
    driver.serve()
    threading.Thread(target=driver.keep_up, daemon=True).start()
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    driver.stop()
    os._exit(0)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main(sys.argv[1])
