"""EndpointSlices: which endpoints there are, and how they are spread over slices. Pure functions.

The rules are those of k8s.io/endpointslice (reconciler.go): endpoints stay in their slice, a slice
has at most 100 of them, and a Service without endpoints has one empty slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kube_in_process.components.controllers.endpoints.serving import (
    Port,
    ServingPod,
    address,
    is_headless,
    reference,
)
from kube_in_process.components.objects import deleting, labels
from kube_in_process.components.pods import node_name, ready
from kube_in_process.objects import Object

MOST = 100
"""The most endpoints of a slice."""
ZONE = "topology.kubernetes.io/zone"

Endpoints = list[Object]
Ports = tuple[Port, ...]


@dataclass(slots=True)
class SlicePlan:
    """What to write: slices to create and to change with their content, and slices to delete."""

    create: list[Object] = field(default_factory=list)
    update: list[tuple[Object, Object]] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)


def endpoints_by_ports(
    service: Object, serving_pods: Iterable[ServingPod], zones: Mapping[str, str]
) -> dict[Ports, Endpoints]:
    """The endpoints of a Service; ``zones`` are those of the nodes."""
    by_ports: dict[Ports, Endpoints] = {}
    for serving_pod in serving_pods:
        if serving_pod.ports or is_headless(service):
            by_ports.setdefault(serving_pod.ports, []).append(_endpoint(serving_pod, zones))
    return by_ports


def _endpoint(server: ServingPod, zones: Mapping[str, str]) -> Object:
    pod = server.pod
    conditions = {
        "ready": server.is_ready,
        "serving": ready(pod),
        "terminating": deleting(pod),
    }
    shown: Object = {"addresses": [address(pod)], "conditions": conditions}
    if server.hostname:
        shown["hostname"] = server.hostname
    shown |= {"targetRef": reference(pod), "nodeName": node_name(pod)}
    zone = zones.get(node_name(pod))
    return {**shown, "zone": zone} if zone else shown


def subset_endpoints(subsets: Iterable[Object]) -> dict[Ports, Endpoints]:
    """The endpoints that an Endpoints object shows which was written by hand."""
    by_ports: dict[Ports, Endpoints] = {}
    for subset in subsets:
        ports = tuple(
            Port(
                port.get("name") or "",
                port["port"],
                port.get("protocol", "TCP"),
                port.get("appProtocol") or "",
            )
            for port in subset.get("ports") or ()
        )
        into = by_ports.setdefault(ports, [])
        for key, is_ready in (("addresses", True), ("notReadyAddresses", False)):
            into += [_by_hand(entry, is_ready=is_ready) for entry in subset.get(key) or ()]
    return by_ports


def _by_hand(given: Object, *, is_ready: bool) -> Object:
    shown: Object = {"addresses": [given["ip"]], "conditions": {"ready": is_ready}}
    keys = ("hostname", "nodeName", "targetRef")
    return shown | {key: given[key] for key in keys if given.get(key)}


def plan(existing: Iterable[Object], wanted: Mapping[Ports, Endpoints]) -> SlicePlan:
    """Spread endpoints over slices, with as few changes of the existing ones as possible."""
    left = [endpoint_slice for endpoint_slice in existing if not deleting(endpoint_slice)]
    result = SlicePlan()
    filled = {ports: endpoints for ports, endpoints in wanted.items() if endpoints}
    for ports, endpoints in filled.items():
        mine = [endpoint_slice for endpoint_slice in left if _ports_of(endpoint_slice) == ports]
        left = [endpoint_slice for endpoint_slice in left if _ports_of(endpoint_slice) != ports]
        _spread(result, mine, ports, endpoints)
    for endpoint_slice in left:
        result.delete.append(endpoint_slice)
    if not filled:
        result.create.append(_content((), []))
    _reuse(result)
    return result


def _spread(result: SlicePlan, mine: list[Object], ports: Ports, endpoints: Endpoints) -> None:
    """Keep endpoints where they are, fill the gaps with new ones, and make slices for the rest."""
    waiting = {endpoint["addresses"][0]: endpoint for endpoint in endpoints}
    kept: list[tuple[Object, Endpoints]] = []
    for endpoint_slice in mine:
        names = [endpoint["addresses"][0] for endpoint in endpoint_slice.get("endpoints") or ()]
        kept.append((endpoint_slice, [waiting.pop(name) for name in names if name in waiting]))
    rest = list(waiting.values())
    for endpoint_slice, inside in sorted(kept, key=lambda pair: -len(pair[1])):
        room = MOST - len(inside)
        inside += rest[:room]
        rest = rest[room:]
        if inside:
            result.update.append((endpoint_slice, _content(ports, inside)))
        else:
            result.delete.append(endpoint_slice)
    for start in range(0, len(rest), MOST):
        result.create.append(_content(ports, rest[start : start + MOST]))


def _reuse(result: SlicePlan) -> None:
    """Write new content into slices that would be deleted."""
    while result.create and result.delete:
        result.update.append((result.delete.pop(0), result.create.pop(0)))


def _content(ports: Ports, endpoints: Endpoints) -> Object:
    shown = [_shown(port) for port in ports]
    return {"endpoints": endpoints or None, "ports": shown or None}


def _shown(port: Port) -> Object:
    return {"name": port.name, **port.shown()}


def _ports_of(endpoint_slice: Object) -> Ports:
    return tuple(
        Port(
            port.get("name") or "",
            port.get("port") or 0,
            port.get("protocol", "TCP"),
            port.get("appProtocol") or "",
        )
        for port in endpoint_slice.get("ports") or ()
    )


def zones_of(nodes: Iterable[Object]) -> dict[str, str]:
    return {node["metadata"]["name"]: labels(node).get(ZONE, "") for node in nodes}
