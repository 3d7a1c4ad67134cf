"""Defaults of resource.k8s.io."""

from __future__ import annotations

from kube_in_process.objects import Object


def default_claim_spec(spec: Object) -> None:
    """By default one device per request. Without requests, the list is null."""
    devices = spec.setdefault("devices", {})
    for key in ("constraints", "config"):
        if not devices.get(key, True):
            del devices[key]
    devices.setdefault("requests", None)
    for request in devices["requests"] or []:
        if isinstance(request.get("exactly"), dict):
            _default_request(request["exactly"])
        for alternative in request.get("firstAvailable") or []:
            _default_request(alternative)


def _default_request(request: Object) -> None:
    request.setdefault("allocationMode", "ExactCount")
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1
    for toleration in request.get("tolerations") or []:
        toleration.setdefault("operator", "Equal")
