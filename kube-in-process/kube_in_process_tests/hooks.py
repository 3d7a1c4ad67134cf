"""A webhook that answers as a test wants, over HTTPS."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trustme
from aiohttp import web

Json = dict[str, Any]
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
}


def allowed(**more: Any) -> Callable[[Json], Json]:
    """An answer that allows the request."""
    return lambda request: {"allowed": True, **more}


def denied(**status: Any) -> Callable[[Json], Json]:
    return lambda request: {"allowed": False, **({"status": status} if status else {})}


def patch(*operations: Json) -> Callable[[Json], Json]:
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return allowed(patchType="JSONPatch", patch=text)


@dataclass
class Hooks:
    """Webhooks by their paths, and the AdmissionRequests that they got."""

    url: str
    bundle: str
    answers: dict[str, Callable[[Json], Json]] = field(default_factory=dict)
    asked: list[Json] = field(default_factory=list)

    def hook(self, path: str, **more: Any) -> Json:
        """The entry of a configuration, for ConfigMaps that have the path as label ``case``."""
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["*"],
            "resources": ["configmaps"],
        }
        return {
            "name": f"{path}.example.com",
            "clientConfig": {"url": f"{self.url}/{path}", "caBundle": self.bundle},
            "rules": [rule],
            "objectSelector": {"matchLabels": {"case": path}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }

    async def serve(self, request: web.Request) -> web.Response:
        review = await request.json()
        path = request.path.lstrip("/")
        if path == "broken":
            return web.Response(status=500, text="broken\n")
        self.asked.append(review["request"])
        response = {"uid": review["request"]["uid"], **self.answers[path](review["request"])}
        kind = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview"}
        return web.json_response({**kind, "response": response})


@asynccontextmanager
async def hooks() -> AsyncIterator[Hooks]:
    """Serve webhooks on a free port."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    configured = Hooks("", base64.b64encode(authority.cert_pem.bytes()).decode())
    app = web.Application()
    app.router.add_post("/{path:.*}", configured.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    configured.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield configured
    finally:
        await runner.cleanup()


def configuration(kind: str, *webhooks: Json) -> tuple[str, Json]:
    """The path and the body that create a configuration."""
    body = {"metadata": {"name": kind.lower()}, "webhooks": list(webhooks)}
    return f"{ADMISSION}/{PLURALS[kind]}", body
