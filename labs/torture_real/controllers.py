"""Runs claimctl as installed: processes with a ServiceAccount's token and the rights in rbac/."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube_in_process.real.servers.files import Files
from kube_in_process.real.servers.process import ServerProcess, free_port

from claimctl.kube.errors import ApiError
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from tests.e2e.rights import ACCOUNT, bodies
from tests.support.crds import definitions

SPACE, ACCOUNT_NAME = "claimctl-system", "claimctl-controller"
USER = f"system:serviceaccount:{SPACE}:{ACCOUNT_NAME}"
BINDING_SECONDS = 30
"""Longer than a paused API server and a paused scheduler together delay a binding."""
SLOW_BINDING_SECONDS = 90
"""The same beside a driver that reports late."""
_DAY = b'{"spec": {"expirationSeconds": 86400}}'
_AFTER_OUTAGE = 90.0
"""Seconds within which an outage of the API server explains the end of a controller."""


async def install(client: DocumentClient) -> None:
    """Install the CRDs, the rights, and claimctl's namespace."""
    for definition in definitions():
        await _apply(client, definition)
    for body in bodies("namespace.yaml", "controller.yaml", "templates.yaml"):
        await _apply(client, body)


async def token(transport: Transport) -> str:
    """The token of the ServiceAccount, by TokenRequest."""
    headers = {"content-type": "application/json"}
    answer = await transport.send("POST", f"{ACCOUNT}/token", (), headers, _DAY)
    body = json.loads(b"".join([part async for part in answer.body]))
    secret: str = body["status"]["token"]
    return secret


async def _apply(client: DocumentClient, body: dict[str, Any]) -> None:
    try:
        await client.create(body)
    except ApiError as refused:
        if refused.status != 409:
            raise


@dataclass
class Controllers:
    """The processes of claimctl. ``bug`` names the bug that is planted in them; "" for none."""

    files: Files
    logs: Path
    bug: str = ""
    elect: bool = True
    """Whether the processes use leader election. Without it all of them work at once."""
    flags: tuple[str, ...] = ()
    """Further arguments of every process."""
    running: dict[str, ServerProcess] = field(default_factory=dict)
    crashes: list[str] = field(default_factory=list)
    """Ends of processes that no outage of the API server explains."""
    outage: float = -_AFTER_OUTAGE
    """The monotonic time of the last fault of the API server."""
    ended: int = 0
    """How many processes ended by themselves after such an outage."""
    _born: int = 0

    async def install(self, transport: Transport) -> None:
        """Install claimctl, as an administrator; then processes can be started."""
        await install(DocumentClient(transport, "administrator"))
        self.files.write_kubeconfig(self._kubeconfig, await token(transport))

    @property
    def _kubeconfig(self) -> Path:
        return self.logs / "claimctl.kubeconfig"

    def start(self, name: str) -> None:
        """Start a process. Call it from a thread that lives as long as the process may."""
        self._born += 1
        server = ServerProcess(
            name, self._command(name), self.logs / f"claimctl-{self._born}-{name}.log"
        )
        server.start()
        self.running[name] = server

    def _command(self, name: str) -> tuple[str, ...]:
        program: tuple[str, ...] = (str(Path(sys.executable).with_name("claimctl")),)
        if self.bug:
            program = (sys.executable, "-m", "labs.torture_real.planted", self.bug)
        return (
            *program,
            "controller",
            f"--kubeconfig={self._kubeconfig}",
            f"--identity={name}-{self._born}",
            f"--bind-address=127.0.0.1:{free_port()}",
            "--leader-elect" if self.elect else "--no-leader-elect",
            f"--binding-seconds={BINDING_SECONDS}",
            f"--slow-binding-seconds={SLOW_BINDING_SECONDS}",
            "--log-format=json",
            *self.flags,
        )

    def revive(self) -> None:
        """Restart processes that have ended by themselves, as a kubelet would."""
        for name, server in list(self.running.items()):
            if server.running:
                continue
            if time.monotonic() - self.outage < _AFTER_OUTAGE:
                self.ended += 1
            else:
                self.crashes.append(f"{name} has ended: {server.last_error()}")
            self.start(name)

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL, also a paused one."""
        self.running.pop(name).kill()

    def stop_all(self) -> None:
        """Stop all processes with SIGTERM."""
        for name in list(self.running):
            self.running.pop(name).stop()

    def tracebacks(self) -> list[str]:
        """The tracebacks in the logs."""
        texts = {log: log.read_text(errors="replace") for log in self.logs.glob("claimctl-*.log")}
        return [
            f"{log.name}: {text[text.index(_TRACEBACK) :][:600]}"
            for log, text in sorted(texts.items())
            if _TRACEBACK in text
        ]


_TRACEBACK = "Traceback (most recent call last)"
