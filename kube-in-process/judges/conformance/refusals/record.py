"""Records how a real server answers the requests of ``cases.yaml``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kube_in_process.real.servers.plane import ControlPlane
from kube_in_process.real.transport import HttpTransport

from judges.asking import record
from judges.conformance.refusals.cases import NAMESPACE, recording_of, requests, shown


def main(arguments: Sequence[str]) -> int:
    return record(arguments, "refusals-record", __doc__, _asked, _keep)


def _keep(answers: dict[str, str], version: str) -> str:
    recording_of(version).write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    return f"{len(answers)} answers of {version}"


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
