"""Defaults of Services, and of the kinds of networking and discovery."""

from __future__ import annotations

from kube_in_process.objects import Object

_AFFINITY_SECONDS = 10800


def is_external(spec: Object) -> bool:
    """Whether traffic may come from outside of the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or bool(
        kind == "ClusterIP" and spec.get("externalIPs")
    )


def default_service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    _default_affinity(spec)
    for port in spec.get("ports") or []:
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if port.get("targetPort") in (0, "", None):
            port["targetPort"] = port.get("port") or 0
    if is_external(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    balancer = obj.setdefault("status", {}).setdefault("loadBalancer", {})
    for ingress in balancer.get("ingress") or []:
        if spec["type"] == "LoadBalancer" and ingress.get("ip"):
            ingress.setdefault("ipMode", "VIP")


def _default_affinity(spec: Object) -> None:
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    if spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            timeout = {"timeoutSeconds": _AFFINITY_SECONDS}
            spec["sessionAffinityConfig"] = {"clientIP": timeout}


def default_endpoints(obj: Object) -> None:
    for subset in obj.get("subsets") or []:
        for port in subset.get("ports") or []:
            port.setdefault("protocol", "TCP")


def default_slice(obj: Object) -> None:
    """Labels of topology exist only in old versions."""
    for endpoint in obj.get("endpoints") or []:
        endpoint.pop("deprecatedTopology", None)
    for port in obj.get("ports") or []:
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def default_class(obj: Object) -> None:
    spec = obj["spec"]
    if spec.get("parameters") is not None:
        spec["parameters"].setdefault("scope", "Cluster")


def default_policy(obj: Object) -> None:
    """A policy is one of Ingress, and of Egress if it has such rules."""
    spec = obj.setdefault("spec", {})
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or []:
            for port in rule.get("ports") or []:
                port.setdefault("protocol", "TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
