"""What ``/metrics`` answers: the metrics of an API server that scrapers and dashboards ask for.

Names and labels are those of kube-apiserver. Only these are there: requests, stored objects, the
version and the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from claimctl.embedded.http.routing import Route
from claimctl.embedded.storage.store import Store

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

METRICS_PATH = "/metrics"
_METHODS = {"get": "GET", "create": "POST", "update": "PUT", "deletecollection": "DELETECOLLECTION"}
_REQUEST_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "code")


class RequestMetrics:
    """Counts requests for resources, and writes the page."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, ...]] = Counter()

    def note(self, method: str, found: Route, code: int) -> None:
        """Count one request that was answered with ``code``."""
        verb = found.verb(method)
        scope = "resource" if found.name else "namespace" if found.namespace else "cluster"
        self._requests[
            _METHODS.get(verb, verb.upper()),
            found.group,
            found.version,
            found.plural,
            found.subresource,
            scope,
            str(code),
        ] += 1

    def page(self, store: Store, version: str) -> tuple[str, bytes]:
        """The content type and the text of ``/metrics``.

        Args:
            version: the version that the server emulates, like ``v1.36.2``.
        """
        from prometheus_client import CollectorRegistry, ProcessCollector
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
        from prometheus_client.registry import Collector

        families = list(self._families(store, version))

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
