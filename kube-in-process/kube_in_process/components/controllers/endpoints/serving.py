"""Which pods serve a Service, and under which ports. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kube_in_process.components.objects import deleting, labels, name, namespace, uid
from kube_in_process.components.pods import ended, node_name, ready
from kube_in_process.objects import Object

HEADLESS = "service.kubernetes.io/headless"
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a Service, as one pod serves it."""

    name: str
    number: int
    protocol: str
    application: str = ""

    def shown(self) -> Object:
        shown: Object = {"name": self.name} if self.name else {}
        shown |= {"port": self.number, "protocol": self.protocol}
        return {**shown, "appProtocol": self.application} if self.application else shown


@dataclass(frozen=True, slots=True)
class ServingPod:
    """A pod that may serve a Service."""

    pod: Object
    ports: tuple[Port, ...]
    is_ready: bool
    """Whether it gets traffic: it is ready and not being deleted, or the Service does not ask."""
    hostname: str


def is_headless(service: Object) -> bool:
    return bool(service["spec"].get("clusterIP") == "None")


def is_followed(service: Object) -> bool:
    """Whether the controllers look for the pods of a Service. Others have endpoints by hand."""
    return bool(service["spec"].get("selector")) and service["spec"].get("type") != "ExternalName"


def selects(service: Object, labels_of_pod: Mapping[str, str]) -> bool:
    return is_followed(service) and service["spec"]["selector"].items() <= labels_of_pod.items()


def relevance(pod: Object | None) -> tuple[object, ...]:
    """What of a pod the endpoints show."""
    if pod is None:
        return ()
    return (labels(pod), address(pod), node_name(pod), ended(pod), deleting(pod), ready(pod))


def address(pod: Object) -> str:
    ip: str = (pod.get("status") or {}).get("podIP") or ""
    return ip


def servers(service: Object, pods: Iterable[Object]) -> list[ServingPod]:
    """The pods that have an address and have not ended, in the order of their addresses."""
    everyone = bool(service["spec"].get("publishNotReadyAddresses"))
    serving = [
        ServingPod(
            pod,
            _ports(service, pod),
            everyone or (ready(pod) and not deleting(pod)),
            _hostname(service, pod),
        )
        for pod in pods
        if selects(service, labels(pod)) and address(pod) and not ended(pod)
    ]
    return sorted(serving, key=lambda serving_pod: address(serving_pod.pod))


def _hostname(service: Object, pod: Object) -> str:
    spec = pod["spec"]
    named = spec.get("hostname") and spec.get("subdomain") == name(service)
    return str(spec["hostname"]) if named else ""


def _ports(service: Object, pod: Object) -> tuple[Port, ...]:
    """The ports of the Service that the pod has. A port that it does not name is left out."""
    ports = []
    for port in service["spec"].get("ports") or ():
        number = _number(port, pod)
        if number is not None:
            application = port.get("appProtocol") or ""
            ports.append(Port(port.get("name") or "", number, port["protocol"], application))
    return tuple(ports)


def _number(port: Object, pod: Object) -> int | None:
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target
    spec = pod["spec"]
    beside = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in (*spec["containers"], *beside):
        for container_port in container.get("ports") or ():
            if (container_port.get("name"), container_port.get("protocol", "TCP")) == (
                target,
                port["protocol"],
            ):
                return int(container_port["containerPort"])
    return None


def reference(pod: Object) -> Object:
    return {"kind": "Pod", "namespace": namespace(pod), "name": name(pod), "uid": uid(pod)}


def changed_at(service: Object, serving_pods: Iterable[ServingPod]) -> str:
    """When the last change was made that the endpoints show."""
    times = [service["metadata"]["creationTimestamp"]]
    for serving_pod in serving_pods:
        conditions = (serving_pod.pod.get("status") or {}).get("conditions") or ()
        times += [
            condition["lastTransitionTime"]
            for condition in conditions
            if condition["type"] == "Ready" and condition.get("lastTransitionTime")
        ]
    return str(max(times))


def endpoint_subsets(service: Object, serving_pods: Iterable[ServingPod]) -> list[Object]:
    """The subsets of an Endpoints object: addresses by their ports."""
    everyone = service["spec"].get("publishNotReadyAddresses")
    by_ports: dict[tuple[Port, ...], dict[str, list[Object]]] = {}
    for serving_pod in serving_pods:
        if deleting(serving_pod.pod) and not everyone:
            continue
        if not serving_pod.ports and not is_headless(service):
            continue
        lists = by_ports.setdefault(serving_pod.ports, {})
        key = "addresses" if serving_pod.is_ready else "notReadyAddresses"
        lists.setdefault(key, []).append(_address(serving_pod))
    subsets: list[Object] = []
    for ports, lists in by_ports.items():
        subset: Object = {key: lists[key] for key in sorted(lists)}
        if ports:
            subset["ports"] = [port.shown() for port in ports]
        subsets.append(subset)
    return subsets


def _address(server: ServingPod) -> Object:
    shown: Object = {"ip": address(server.pod)}
    if server.hostname:
        shown["hostname"] = server.hostname
    return {**shown, "nodeName": node_name(server.pod), "targetRef": reference(server.pod)}
