"""Records how a real server answers the requests of ``cases.yaml``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kube_in_process.real.servers.plane import ControlPlane
from kube_in_process.real.transport import HttpTransport

from judges.asking import answer, record
from judges.conformance.refusals.cases import NAMESPACE, recording_of, requests, shown


def main(arguments: Sequence[str]) -> int:
    return record(arguments, "refusals-record", __doc__, _asked, _keep)


def _keep(answers: dict[str, str], version: str) -> str:
    recording_of(version).write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    return f"{len(answers)} answers of {version}"


async def _asked(plane: ControlPlane) -> dict[str, str]:
    answers = {}
    async with HttpTransport(plane.files.access) as transport:
        core = "/api/v1/namespaces"
        await answer(transport, "POST", core, {"metadata": {"name": NAMESPACE}})
        account = {"metadata": {"name": "default"}}
        await answer(transport, "POST", f"{core}/{NAMESPACE}/serviceaccounts", account)
        for request in requests():
            status, body = await answer(
                transport, request.method, request.path, request.body, request.headers
            )
            answers[request.case] = shown(status, body)
    return answers
