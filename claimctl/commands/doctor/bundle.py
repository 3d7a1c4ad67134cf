"""Read what a bug report needs: objects, explanations and the controller's log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from claimctl.cli.output import as_yaml
from claimctl.cli.printer import as_lines
from claimctl.commands.doctor.account import SELECTOR
from claimctl.commands.doctor.scrubbing import scrubbed
from claimctl.installation import find_address
from claimctl.kube.client import Client
from claimctl.kube.codec import raw_page
from claimctl.kube.errors import KubeError, NotFound
from claimctl.wire import resources as wire
from claimctl.wire.base import decode_plain
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import Resource
from claimctl.wire.unreadable import Unreadable

LOG_LINES = 5000
_DEVICE_CLASSES = Resource(
    "resource.k8s.io", "v1", "deviceclasses", "DeviceClass", ObjectHeader, namespaced=False
)
KINDS: tuple[Resource[Any], ...] = (
    wire.RESOURCECLAIMS,
    wire.RESOURCECLAIMTEMPLATES,
    wire.CLAIMRESERVATIONS,
    wire.DOWNGRADEPLANS,
    wire.PODS,
    *wire.WORKLOADS.values(),
    wire.REPLICASETS,
    wire.PODGROUPS,
    wire.RESOURCESLICES,
    _DEVICE_CLASSES,
    wire.NODES,
    wire.LEASES,
    wire.EVENTS,
)


@dataclass(slots=True)
class Bundle:
    """The files of a report by their paths, and what could not be read."""

    files: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


async def read(client: Client, namespace: str, bundle: Bundle) -> AsyncIterator[str]:
    """Add objects of a namespace ('': of all) and logs to the bundle. Yields what it reads next."""
    for resource in KINDS:
        yield f"{resource.plural}"
        await _objects(client, namespace, resource, bundle)
    yield "logs of the controller"
    try:
        await _logs(client, bundle)
    except KubeError as error:
        bundle.problems.append(f"logs: {error}")


async def _objects(client: Client, namespace: str, resource: Resource[Any], bundle: Bundle) -> None:
    place = namespace if resource.namespaced and resource is not wire.LEASES else ""
    path = client.served(resource).path(place)
    try:
        items = raw_page(await client.get_raw(path)).items or ()
    except NotFound:
        return
    except (KubeError, msgspec.MsgspecError) as error:
        bundle.problems.append(f"{resource.plural}: {error}")
        return
    shown = filter(None, (_text(resource, bytes(item), bundle) for item in items))
    if text := "".join(shown):
        bundle.files[f"objects/{resource.plural}.yaml"] = text


def _text(resource: Resource[Any], raw: bytes, bundle: Bundle) -> str:
    """The object as an entry of a list in YAML; '' if the report has no use for it."""
    try:
        item = scrubbed(decode_plain(raw), resource.plural)
        if resource is wire.LEASES and "claimctl" not in item["metadata"]["name"]:
            return ""
        return as_yaml([item])
    except msgspec.MsgspecError as error:
        bundle.problems.append(Unreadable.of(resource, raw, str(error)).describe())
        return ""


async def _logs(client: Client, bundle: Bundle) -> None:
    place = (await find_address(client)).namespace
    pods = await client.list(wire.PODS, place, label_selector=SELECTOR, partial=True)
    for pod in pods.items:
        path = wire.PODS.path(place, pod.metadata.name, "log")
        tail = (("tailLines", str(LOG_LINES)),)
        for file, query in (("log", ()), ("previous.log", (("previous", "true"),))):
            try:
                body = await client.get_raw(path, (*tail, *query))
            except KubeError as error:
                if not query:
                    bundle.problems.append(f"log of {pod.metadata.name}: {error}")
                continue
            lines = body.decode("utf-8", "replace").rstrip("\n").split("\n")
            bundle.files[f"logs/{pod.metadata.name}.{file}"] = as_lines(lines)
