"""The controllers that follow the pods of Services: Endpoints, EndpointSlices, and mirrored slices.

Nothing listens at a Service. Its endpoints say which pods would get the traffic.
"""

from __future__ import annotations

from contextlib import suppress

from kube_in_process.components.controllers.endpoints.serving import (
    HEADLESS,
    TRIGGER,
    changed_at,
    endpoint_subsets,
    is_followed,
    is_headless,
    relevance,
    selects,
    servers,
)
from kube_in_process.components.controllers.endpoints.slices import (
    SlicePlan,
    endpoints_by_ports,
    plan,
    subset_endpoints,
    zones_of,
)
from kube_in_process.components.objects import (
    annotations_of,
    controller_reference,
    deleting,
    key_of,
    labels,
    name,
    namespace,
)
from kube_in_process.components.pods import ended
from kube_in_process.errors import NotFound
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change, Key

GATHER_SECONDS = 0.005
"""Seconds in which changes of pods are collected into one sync, for each hundred of them."""
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_OWNED = "endpoints.kubernetes.io/managed-by"
_SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
_LABELLED_SINCE = (1, 33)


def in_namespace(obj: Object) -> tuple[str, ...]:
    return (namespace(obj),)


def _followed(service: Object) -> tuple[str, ...]:
    """Index values: the namespace of a Service with a selector."""
    return (namespace(service),) if is_followed(service) else ()


def _of_service(endpoint_slice: Object) -> tuple[str, ...]:
    """Index values: ``namespace/name`` of the Service of a slice."""
    return (f"{namespace(endpoint_slice)}/{labels(endpoint_slice).get(SERVICE_NAME, '')}",)


class ServiceFollower(Component[Key]):
    """Looks at a Service again when it or one of its pods changes."""

    def watch(self) -> None:
        self.views["services"].index("followed", _followed)
        self.views["pods"].index("namespace", in_namespace)
        self.views["services"].subscribe(lambda change: self.queue.add(change.key))
        self.views["pods"].subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        services = self.views["services"].by("followed", change.key[0])
        if not services or relevance(change.old) == relevance(change.new):
            return
        sides = [labels(side) for side in (change.old, change.new) if side is not None]
        for service in services:
            if any(selects(service, side) for side in sides):
                size = self.views["pods"].count("namespace", change.key[0])
                self.queue.add_after(key_of(service), GATHER_SECONDS * (1 + size / 100))

    def _pods(self, service: Object) -> list[Object]:
        neighbours = self.views["pods"].by("namespace", namespace(service))
        return [pod for pod in neighbours if selects(service, labels(pod)) and not ended(pod)]


class EndpointsController(ServiceFollower):
    name = "endpoint-controller"

    def sync(self, key: Key) -> None:
        service = self.views["services"].get(*key)
        if service is None:
            with suppress(NotFound):
                self.api.delete("endpoints", *key)
            return
        if is_followed(service):
            self._write(service, self.api.find("endpoints", *key))

    def _write(self, service: Object, current: Object | None) -> None:
        serving_pods = servers(service, self._pods(service))
        shown = endpoint_subsets(service, serving_pods)
        subsets = {"subsets": shown} if shown else {}
        wanted = self._labels(service)
        if current is None:
            metadata = {"name": name(service), "namespace": namespace(service), "labels": wanted}
            metadata["annotations"] = {TRIGGER: changed_at(service, serving_pods)}
            self.api.create("endpoints", {"metadata": metadata, **subsets})
            return
        if (current.get("subsets") or [], labels(current)) == (shown, wanted):
            return
        annotations = {**annotations_of(current), TRIGGER: changed_at(service, serving_pods)}
        metadata = {**current["metadata"], "labels": wanted, "annotations": annotations}
        kept = {key: value for key, value in current.items() if key != "subsets"}
        self.api.update("endpoints", {**kept, "metadata": metadata, **subsets})

    def _labels(self, service: Object) -> dict[str, str]:
        shown = {key: value for key, value in labels(service).items() if key != HEADLESS}
        if self.context.features.version >= _LABELLED_SINCE:
            shown[_OWNED] = "endpoint-controller"
        return {**shown, HEADLESS: ""} if is_headless(service) else shown


class SliceWriter(Component[Key]):
    """Writes what a plan says."""

    manager_label: str

    def _mine(self, key: Key) -> list[Object]:
        slices = self.views["endpointslices"].by("service", "/".join(key))
        return [
            endpoint_slice
            for endpoint_slice in slices
            if labels(endpoint_slice).get(MANAGED_BY) == self.manager_label
        ]

    def _carry_out(
        self, slice_plan: SlicePlan, owner: Object, given: dict[str, str], since: str
    ) -> None:
        wanted = {**given, SERVICE_NAME: name(owner), MANAGED_BY: self.manager_label}
        annotations = {TRIGGER: since} if since else {}
        for content in slice_plan.create:
            metadata = {
                "generateName": f"{name(owner)}-",
                "namespace": namespace(owner),
                "labels": wanted,
                "annotations": annotations,
                "ownerReferences": [controller_reference(owner)],
            }
            body = {"metadata": metadata, "addressType": "IPv4", **content}
            self.views["endpointslices"].assume(self.api.create("endpointslices", body))
        for endpoint_slice, content in slice_plan.update:
            same = all((endpoint_slice.get(key) or None) == value for key, value in content.items())
            if same and labels(endpoint_slice) == wanted:
                continue
            metadata = {**endpoint_slice["metadata"], "labels": wanted, "annotations": annotations}
            self.api.update("endpointslices", {**endpoint_slice, "metadata": metadata, **content})
        for endpoint_slice in slice_plan.delete:
            self._remove(endpoint_slice)

    def _remove(self, endpoint_slice: Object) -> None:
        with suppress(NotFound):
            self.api.delete("endpointslices", *key_of(endpoint_slice))


class EndpointSliceController(ServiceFollower, SliceWriter):
    name = "endpointslice-controller"
    manager_label = "endpointslice-controller.k8s.io"

    def watch(self) -> None:
        super().watch()
        self.views["endpointslices"].index("service", _of_service)
        self.views["endpointslices"].subscribe(self._slice_changed)

    def _slice_changed(self, change: Change) -> None:
        """Look again after somebody else has deleted or changed a slice."""
        endpoint_slice = change.object
        if change.old is not None and labels(endpoint_slice).get(MANAGED_BY) == self.manager_label:
            self.queue.add((change.key[0], labels(endpoint_slice).get(SERVICE_NAME, "")))

    def sync(self, key: Key) -> None:
        service = self.views["services"].get(*key)
        if service is None or deleting(service) or not is_followed(service):
            return
        serving_pods = servers(service, self._pods(service))
        zones = zones_of(self.views["nodes"].items())
        slice_plan = plan(self._mine(key), endpoints_by_ports(service, serving_pods, zones))
        given = {k: v for k, v in labels(service).items() if k not in (SERVICE_NAME, MANAGED_BY)}
        headless = {HEADLESS: ""} if is_headless(service) else {}
        self._carry_out(
            slice_plan, service, {**given, **headless}, changed_at(service, serving_pods)
        )


class MirroringController(SliceWriter):
    """Copies Endpoints that were written by hand, of Services without a selector, into slices."""

    name = "endpointslicemirroring-controller"
    manager_label = "endpointslicemirroring-controller.k8s.io"

    def watch(self) -> None:
        self.views["endpointslices"].index("service", _of_service)
        for plural in ("services", "endpoints"):
            self.views[plural].subscribe(lambda change: self.queue.add(change.key))

    def sync(self, key: Key) -> None:
        service = self.views["services"].get(*key)
        endpoints = self.views["endpoints"].get(*key)
        mirrored = service is not None and endpoints is not None and not is_followed(service)
        if not mirrored or endpoints is None or labels(endpoints).get(_SKIP_MIRROR) == "true":
            for endpoint_slice in self._mine(key):
                self._remove(endpoint_slice)
            return
        wanted = subset_endpoints(endpoints.get("subsets") or ())
        since = annotations_of(endpoints).get(TRIGGER, "")
        self._carry_out(plan(self._mine(key), wanted), endpoints, dict(labels(endpoints)), since)
