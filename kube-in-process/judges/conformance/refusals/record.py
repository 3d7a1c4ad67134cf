"""Records how a real server answers the requests of ``cases.yaml``."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kube_in_process.real.flags import Parser, Servers
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import CannotStart
from kube_in_process.real.transport import HttpTransport

from judges.conformance.refusals.cases import NAMESPACE, recording_of, requests, shown


def main(arguments: Sequence[str]) -> int:
    parser = Parser("judges refusals-record", __doc__)
    parser.add_version()
    wanted = parser.parse_args(arguments)
    servers = Servers(programs=parser.programs(wanted.version))
    version = ".".join(map(str, servers.programs.version))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="judges-") as folder,
            running(ControlPlane(servers.programs, Path(folder), Wanted())) as plane,
        ):
            answers = asyncio.run(_asked(plane))
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    recording_of(version).write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    print(f"{len(answers)} answers of {version}")
    return 0


async def _asked(plane: ControlPlane) -> dict[str, str]:
    answers = {}
    async with HttpTransport(plane.files.access) as transport:

        async def ask(method: str, path: str, body: object, headers: dict[str, str]) -> str:
            path, _, query = path.partition("?")
            pairs = [
                (name, value)
                for name, _, value in (it.partition("=") for it in query.split("&"))
                if name
            ]
            response = await transport.send(method, path, pairs, headers, json.dumps(body).encode())
            data = b"".join([part async for part in response.body])
            return shown(response.status, json.loads(data))

        core = "/api/v1/namespaces"
        plain = {"content-type": "application/json"}
        await ask("POST", core, {"metadata": {"name": NAMESPACE}}, plain)
        account = {"metadata": {"name": "default"}}
        await ask("POST", f"{core}/{NAMESPACE}/serviceaccounts", account, plain)
        for request in requests():
            answers[request.case] = await ask(
                request.method, request.path, request.body, dict(request.headers)
            )
    return answers
