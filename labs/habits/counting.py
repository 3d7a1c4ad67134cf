"""Counts what happens on an embedded cluster while a cell is played."""

from __future__ import annotations

from kube_in_process.cluster import Cluster
from kube_in_process.components.drivers.driver import Driver
from kube_in_process.components.kubelet.kubelet import CREATE_FAILED, PREPARE_FAILED
from kube_in_process.habits import deciding
from kube_in_process.objects import Object
from kube_in_process.storage.store import Revision

from labs.habits.figures import Figures
from tests.e2e.site import NAMESPACE

CLAIM = "slice"


class Counting:
    """Counts every write to the cluster as it is made.

    Attributes:
        wanted: whether the workload is to have its device. What it loses later does not count.
    """

    def __init__(self, cluster: Cluster, figures: Figures) -> None:
        self._cluster, self._figures = cluster, figures
        self._refusals: dict[str, int] = {}
        self._forgotten: set[tuple[str, str]] = set()
        self.wanted = True
        cluster.subscribe(self._notice)

    @property
    def driver(self) -> Driver:
        return self._cluster.driver(self._cluster.options.driver)

    def _notice(self, revision: Revision) -> None:
        if revision.namespace == NAMESPACE and revision.plural == "events":
            self._event(revision)
        elif revision.namespace == NAMESPACE and revision.plural == "resourceclaims":
            self._claim(revision)
        elif revision.namespace == NAMESPACE and revision.plural == "pods":
            self._pod(revision)
        self._forgotten |= set(self.driver.abandoned)
        self._figures.forgotten = len(self._forgotten)

    def _event(self, revision: Revision) -> None:
        event = revision.object()
        source = (event.get("source") or {}).get("component", "")
        if event.get("reason") in (PREPARE_FAILED, CREATE_FAILED) and source == "kubelet":
            self._refusals[revision.name] = event.get("count", 1)
            self._figures.refused = sum(self._refusals.values())

    def _claim(self, revision: Revision) -> None:
        before = _device(revision.previous_object())
        after = None if revision.type == "DELETED" else _device(revision.object())
        if before is None or after == before:
            return
        if self.wanted and self._is_in_order(before):
            self._figures.lost += 1
        prepared = f"{revision.namespace}/{revision.name}", str(before["pool"])
        self._figures.in_use += prepared in self.driver.prepared

    def _pod(self, revision: Revision) -> None:
        before, after = revision.previous_object(), revision.object()
        if before is None or _runs(before) or not _runs(after):
            return
        claim = self._cluster.admin.find("resourceclaims", NAMESPACE, CLAIM)
        device = _device(claim)
        self._figures.broken += device is not None and not self._is_in_order(device)

    def _is_in_order(self, device: Object) -> bool:
        """Whether the driver has the device and does not declare it broken."""
        options = self._cluster.options
        habits = deciding.on_node(self.driver.habits, str(device["pool"]))
        all_: list[Object] = [{"name": f"dev-{at}"} for at in range(options.devices_per_node)]
        shown = deciding.shows(habits, all_, ())
        return any(each["name"] == device["device"] and not each.get("taints") for each in shown)


def _device(claim: Object | None) -> Object | None:
    """The first device that is allocated to a claim."""
    allocation = ((claim or {}).get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or [None]
    found: Object | None = results[0]
    return found


def _runs(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running"
