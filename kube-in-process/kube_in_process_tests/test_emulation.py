"""What the server does not do it does not take either, and it says what that is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from kube_in_process.api_server import api_server
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.kinds.emulation import EMULATION
from kube_in_process.kinds.kind import Kind
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.text.data import table

PAGE = Path(__file__).parents[1] / "emulation.md"


class NotEmulatedServer:
    def __init__(self) -> None:
        options = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36))
        self._handler = api_server(options, LoopClock(EPOCH))

    async def sent(
        self, method: str, path: str, body: dict[str, Any]
    ) -> tuple[int, dict[str, Any], str]:
        """Status, body and warnings of the answer."""
        response = await self._handler.send(method, path, [], {}, json.dumps(body).encode())
        whole = b"".join([part async for part in response.body])
        return response.status, json.loads(whole), response.headers.get("warning", "")


@pytest.mark.parametrize(
    ("path", "body", "what"),
    [
        ("/api/v1/namespaces/default/resourcequotas", {}, "quotas"),
        ("/api/v1/namespaces/default/limitranges", {}, "limits on new objects"),
    ],
)
async def test_what_nobody_enforces_is_refused(path: str, body: dict[str, Any], what: str) -> None:
    status, answer, _ = await NotEmulatedServer().sent(
        "POST", path, {"metadata": {"name": "x", **body}}
    )
    assert status == 403
    assert answer["reason"] == "Forbidden"
    assert answer["message"].endswith(f"{what} is not emulated")


NAMESPACES = "/api/v1/namespaces"
ENFORCE = "pod-security.kubernetes.io/enforce"


async def test_a_namespace_with_a_security_level_is_taken_and_the_server_warns_once() -> None:
    server = NotEmulatedServer()
    labels = {ENFORCE: "restricted"}
    body = {"metadata": {"name": "x", "labels": labels}}
    status, _, warning = await server.sent("POST", NAMESPACES, body)
    assert status == 201
    assert f"metadata.labels[{ENFORCE}]: this embedded cluster does not check pods" in warning
    body["metadata"]["annotations"] = {"a": "b"}
    assert (await server.sent("PUT", f"{NAMESPACES}/x", body))[::2] == (200, "")
    labels[ENFORCE] = "baseline"
    assert "Pod Security is not emulated" in (await server.sent("PUT", f"{NAMESPACES}/x", body))[2]


async def test_a_namespace_that_asks_for_no_security_is_taken_without_a_word() -> None:
    body = {"metadata": {"name": "x", "labels": {ENFORCE: "privileged"}}}
    assert (await NotEmulatedServer().sent("POST", NAMESPACES, body))[::2] == (201, "")


async def test_a_pod_gets_no_ephemeral_container_as_no_kubelet_would_start_it() -> None:
    path = "/api/v1/namespaces/default/pods/x/ephemeralcontainers"
    status, answer, _ = await NotEmulatedServer().sent("PUT", path, {"metadata": {"name": "x"}})
    text = "pods/ephemeralcontainers: ephemeral containers is not emulated"
    assert (status, answer["message"]) == (403, text)


KINDS = table("kube_in_process.kinds", "builtin.json", tuple[Kind, ...])


def test_each_kind_is_emulated_or_inert_or_refused() -> None:
    refused = (name for name in EMULATION.refused if "/" not in name)
    listed = [*EMULATION.emulated, *EMULATION.inert, *refused]
    assert sorted(listed) == sorted(kind.resource for kind in KINDS)


def test_the_page_says_the_same() -> None:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition("| kind | what does not happen |\n")
    rows = dict(re.findall(r"^\| `(\S+)` \| (.+) \|$", rest, re.MULTILINE))
    refused = {kind: f"refused: no {what}" for kind, what in EMULATION.refused.items()}
    assert rows == {**EMULATION.inert, **refused}
