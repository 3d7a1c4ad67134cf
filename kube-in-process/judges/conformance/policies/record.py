"""Records what a real server says of the policies of ``cases.yaml`` and of their pods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from kube_in_process.real.servers.plane import ControlPlane
from kube_in_process.real.transport import HttpTransport

from judges.asking import answer, record
from judges.conformance.policies.cases import (
    BINDINGS,
    NAMESPACE,
    PODS,
    POLICIES,
    PolicyCase,
    cases,
    recording_of,
    shown,
)

_LAST = PolicyCase(
    "policies are in use",
    {"mutations": ['[JSONPatch{op: "add", path: "/metadata/annotations", value: {"a": "b"}}]']},
)
"""Is made after all others: a server takes some time to see them."""


def main(arguments: Sequence[str]) -> int:
    return record(arguments, "policies-record", __doc__, _asked, _keep)


def _keep(answers: dict[str, list[str]], version: str) -> str:
    text = json.dumps(answers, indent=1, ensure_ascii=False)
    recording_of(version).write_text(text + "\n", encoding="utf-8")
    return f"{len(answers)} policies of {version}"


async def _asked(plane: ControlPlane) -> dict[str, list[str]]:
    answers = {}
    async with HttpTransport(plane.files.access) as transport:
        namespaces = "/api/v1/namespaces"
        await answer(transport, "POST", namespaces, {"metadata": {"name": NAMESPACE}})
        account = {"metadata": {"name": "default"}}
        await answer(transport, "POST", f"{namespaces}/{NAMESPACE}/serviceaccounts", account)
        for case in (*cases(), _LAST):
            status, body = await answer(transport, "POST", POLICIES, case.policy)
            answers[case.case] = [shown(status, body)]
            if status == 201:
                await answer(transport, "POST", BINDINGS, case.binding)
        while not await _in_use(transport):  # noqa: ASYNC110 (only the server knows the answer)
            await asyncio.sleep(0.1)
        del answers[_LAST.case]
        for case in cases():
            if len(answers[case.case][0]) == len("201"):
                answers[case.case].append(shown(*await answer(transport, "POST", PODS, case.pod)))
    return answers


async def _in_use(transport: HttpTransport) -> bool:
    _, pod = await answer(transport, "POST", PODS, _LAST.pod)
    return "annotations" in pod["metadata"]
