"""The Service ``kubernetes``, by which pods find the API server, with its endpoints."""

from __future__ import annotations

from kube_in_process.kinds.service_addresses import ADDRESSES
from kube_in_process.objects import Object
from kube_in_process.runtime.local import ApiFor

NAME, NAMESPACE = "kubernetes", "default"
_ADDRESS = "10.0.0.1"
"""Where the server is said to be. Nothing in the cluster connects to it."""
_PORT: Object = {"name": "https", "port": 6443, "protocol": "TCP"}


def make(api: ApiFor) -> None:
    """Make the Service and its endpoints, unless they are there."""
    if api.find("services", NAMESPACE, NAME) is not None:
        return
    place = {"name": NAME, "namespace": NAMESPACE}
    api.create("services", {"metadata": {**place, "labels": _LABELS}, "spec": _SPEC})
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    subsets = [{"addresses": [{"ip": _ADDRESS}], "ports": [_PORT]}]
    api.create("endpoints", {"metadata": {**place, "labels": labels}, "subsets": subsets})
    endpoint_slice = {
        "metadata": {**place, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [_ADDRESS], "conditions": {"ready": True}}],
        "ports": [_PORT],
    }
    api.create("endpointslices", endpoint_slice)


_LABELS = {"component": "apiserver", "provider": "kubernetes"}
_SPEC: Object = {
    "clusterIP": str(ADDRESSES[1]),
    "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
}
