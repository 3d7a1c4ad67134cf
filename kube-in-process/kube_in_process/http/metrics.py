"""What ``/metrics`` answers: the metrics of an API server that scrapers and dashboards ask for.

Names and labels are those of kube-apiserver. Only these are there: requests, stored objects, the
version and the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kube_in_process.http.routing import Route
from kube_in_process.options import Features
from kube_in_process.storage.store import Store

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

METRICS_PATH = "/metrics"
_RESIZE_GATE_SINCE = (1, 37)
_METHODS = {"get": "GET", "create": "POST", "update": "PUT", "deletecollection": "DELETECOLLECTION"}
_REQUEST_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "code")


class RequestMetrics:
    """Counts requests for resources, and writes the page."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, ...]] = Counter()

    def note(self, method: str, route: Route, code: int) -> None:
        """Count one request that was answered with ``code``."""
        verb = route.verb(method)
        scope = "resource" if route.name else "namespace" if route.namespace else "cluster"
        self._requests[
            _METHODS.get(verb, verb.upper()),
            route.group,
            route.version,
            route.plural,
            route.subresource,
            scope,
            str(code),
        ] += 1

    def page(self, store: Store, version: str, gates: Mapping[str, bool]) -> tuple[str, bytes]:
        """The content type and the text of ``/metrics``.

        Args:
            version: the version that the server emulates, like ``v1.36.2``.
            gates: the feature gates that it tells.
        """
        from prometheus_client import CollectorRegistry, ProcessCollector
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
        from prometheus_client.registry import Collector

        families = [*self._families(store, version), _enabled(gates)]

        class Collected(Collector):
            def collect(self) -> Iterator[Metric]:
                yield from families

        registry = CollectorRegistry()
        registry.register(Collected())
        ProcessCollector(registry=registry)
        return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry)

    def _families(self, store: Store, version: str) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        text = "Requests by verb, resource and HTTP response code."
        requests = CounterMetricFamily("apiserver_request", text, labels=_REQUEST_LABELS)
        for labels, count in sorted(self._requests.items()):
            requests.add_metric(labels, count)
        yield requests
        text = "Stored objects by kind."
        objects = GaugeMetricFamily("apiserver_storage_objects", text, labels=("resource",))
        for resource, count in sorted(store.counts().items()):
            objects.add_metric((resource,), count)
        yield objects
        text = "Always 1; the label has the version that is emulated."
        build = GaugeMetricFamily("kubernetes_build_info", text, labels=("git_version",))
        build.add_metric((version,), 1)
        yield build


def _enabled(gates: Mapping[str, bool]) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    text = "1 for a feature gate that is on."
    enabled = GaugeMetricFamily("kubernetes_feature_enabled", text, labels=("name", "stage"))
    for name, on in gates.items():
        enabled.add_metric((name, "ALPHA"), float(on))
    return enabled


def gates_of(features: Features) -> dict[str, bool]:
    """The gates that an API server of this version has and that controllers ask for."""
    if features.version < _RESIZE_GATE_SINCE:
        return {}
    return {"InPlacePodVerticalScalingSchedulerPreemption": features.resize_preemption}
