"""Records what kubectl asks a real server, and what that answers.

Runs the commands of ``commands.yaml`` against an API server alone, through a proxy that notes each
request but those about the API itself, and writes one transcript into ``judges/conformance/api``.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from kube_in_process.real.flags import Parser
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import API_SERVER, ETCD, CannotStart, Programs

from judges.conformance.compare import without_managed_fields
from judges.differential.placeholders import Encoder
from judges.differential.record import write
from judges.differential.recorder import body_of
from judges.differential.server import RealServer, RecordedAnswer, connected

COMMANDS = Path(__file__).with_name("commands.yaml")
ADDRESSES = "--service-cluster-ip-range=10.96.0.0/12"
"""Services get their addresses from the range that the embedded server has."""
_PARTS = {"api": 1, "apis": 2}
"""How many parts a path about a version has at most: /api/VERSION, /apis/GROUP/VERSION."""
_KEPT = ("accept", "content-type")


class CannotRecord(Exception):
    """A request cannot be written down. The text says why."""


@dataclass
class Proxy:
    """Hands requests on to a server, and notes them with the answers."""

    server: RealServer
    note: str = ""
    seen: list[tuple[str, dict[str, Any], RecordedAnswer]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        data = await request.read()
        headers = {key: request.headers[key] for key in _KEPT if key in request.headers}
        answer = await self.server.send(request.method, request.raw_path, headers, data or None)
        if not _is_about_the_api(request.path):
            asked = _asked(request, headers, data)
            self.seen.append((self.note, asked, answer))
        media = str(answer.headers.get("content-type", "application/json"))
        warnings = answer.headers.get("warning", [])
        reply = web.Response(status=answer.status, body=answer.data)
        reply.headers["content-type"] = media
        for text in [warnings] if isinstance(warnings, str) else warnings:
            reply.headers.add("warning", text)
        return reply


def _is_about_the_api(path: str) -> bool:
    first, *rest = path.strip("/").split("/")
    if first in ("api", "apis"):
        return len(rest) <= _PARTS[first]
    return first in ("openapi", "version")


def _asked(request: web.Request, headers: dict[str, str], data: bytes) -> dict[str, Any]:
    asked: dict[str, Any] = {"method": request.method, "path": request.raw_path}
    if headers:
        asked["headers"] = {key.lower(): value for key, value in headers.items()}
    if not data:
        return asked
    media = headers.get("content-type", "")
    if "protobuf" in media:
        raise CannotRecord(f"{request.raw_path} has a body in protobuf")
    text = data.decode()
    return {**asked, "body": json.loads(text) if "json" in media else text}


def transcript(name: str, server: str, proxy: Proxy, chosen: str) -> dict[str, Any]:
    """The notes of a proxy in the form of the other recordings."""
    encoder, steps = Encoder(chosen), []
    for note, asked, answer in proxy.seen:
        step: dict[str, Any] = {"note": note, "request": encoder.request(asked)}
        body = without_managed_fields(body_of(answer))
        headers = encoder.answer(dict(answer.headers))
        step["response"] = {
            "status": answer.status,
            "headers": headers,
            "body": encoder.answer(body),
        }
        steps.append(step)
    about = "What kubectl asks at its commands."
    return {"name": name, "server": server, "about": about, "steps": steps}


async def _run(command: dict[str, Any], kubeconfig: Path, folder: Path) -> None:
    program = await asyncio.create_subprocess_exec(
        "kubectl",
        f"--kubeconfig={kubeconfig}",
        f"--cache-dir={folder / 'cache'}",
        *shlex.split(command["run"]),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await program.communicate(command.get("input", "").encode())
    print(f"$ kubectl {command['run']}\n{output.decode()}", end="")


async def _recorded(plane: ControlPlane, name: str, server: str, folder: Path) -> dict[str, Any]:
    text = COMMANDS.read_text(encoding="utf-8")
    async with connected(plane) as real:
        proxy = Proxy(real)
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(application, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(_kubeconfig(url)))
        for command in yaml.safe_load(text):
            proxy.note = f"kubectl {command['run']}"
            await _run(command, kubeconfig, folder)
        await runner.cleanup()
    return transcript(name, server, proxy, text)


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    }


def record(programs: Programs, name: str) -> Path:
    """Write the transcript. Raises CannotStart or CannotRecord."""
    alone = replace(programs, names=(ETCD, API_SERVER))
    wanted = Wanted(pod_groups=True, api_server_flags=(ADDRESSES,))
    with tempfile.TemporaryDirectory(prefix="judges-") as directory:
        folder = Path(directory)
        with running(ControlPlane(alone, folder, wanted)) as plane:
            return write(asyncio.run(_recorded(plane, name, programs.text, folder)))


def main(arguments: list[str]) -> int:
    parser = Parser("judges kubectl-record", __doc__)
    parser.add_version()
    wanted = parser.parse_args(arguments)
    try:
        print(record(parser.programs(wanted.version), f"kubectl-v{wanted.version}"))
    except (CannotStart, CannotRecord) as error:
        print(f"record: {error}", file=sys.stderr)
        return 1
    return 0
