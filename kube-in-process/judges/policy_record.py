"""Records the roles and bindings that a real server makes at its start."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kube_in_process.auth import bootstrap
from kube_in_process.auth.rbac import GROUP, PLURALS
from kube_in_process.real.servers.plane import ControlPlane
from kube_in_process.real.transport import HttpTransport

from judges.asking import record

Object = dict[str, Any]

FILE = Path(bootstrap.__file__).with_name("policy.json")
_OF_VENDORS = ("system:openshift:", "system:controller:service-ca-cert-publisher")
"""What the vendor of a build adds to the roles of Kubernetes."""


def main(arguments: Sequence[str]) -> int:
    return record(arguments, "policy-record", __doc__, _listed, _keep)


def _keep(listed: dict[str, list[Object]], _: str) -> str:
    FILE.write_text(recorded(listed), encoding="utf-8")
    return f"{sum(map(len, listed.values()))} roles and bindings"


async def _listed(plane: ControlPlane) -> dict[str, list[Object]]:
    """The objects of each plural."""
    listed = {}
    async with HttpTransport(plane.files.access) as transport:
        for plural in PLURALS:
            response = await transport.send("GET", f"/apis/{GROUP}/v1/{plural}", (), {}, None)
            data = b"".join([part async for part in response.body])
            listed[plural] = json.loads(data)["items"]
    return listed


def recorded(listed: dict[str, list[Object]]) -> str:
    """The text of the file: one line for each object, without what is the same in all of them."""
    parts = []
    for plural, objects in listed.items():
        lines = [json.dumps(_short(obj), separators=(",", ":")) for obj in objects if _kept(obj)]
        parts.append(f'"{plural}": [\n' + ",\n".join(lines) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def _kept(obj: Object) -> bool:
    meta = obj["metadata"]
    made_at_start = bootstrap.LABELS.items() <= (meta.get("labels") or {}).items()
    return made_at_start and not meta["name"].startswith(_OF_VENDORS)


def _short(obj: Object) -> Object:
    meta = obj["metadata"]
    short: Object = {"name": meta["name"]}
    if meta.get("namespace"):
        short["namespace"] = meta["namespace"]
    if labels := {
        name: text for name, text in meta["labels"].items() if name not in bootstrap.LABELS
    }:
        short["labels"] = labels
    rest = {
        key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")
    }
    if "aggregationRule" in rest:
        # a controller fills in the rules, not the server
        del rest["rules"]
    return {**short, **rest}
