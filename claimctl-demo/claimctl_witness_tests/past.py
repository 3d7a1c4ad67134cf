"""Histories of one claim, for the witness."""

from __future__ import annotations

from typing import Any

from kube_in_process.storage.store import Address, Author, Store

from claimctl_witness.witness import Violation, Witness
from claimctl_witness.world import World

US = "claimctl"
KCM = "system:kube-controller-manager"
OWN = {"apiGroup": "apps", "resource": "deployments", "name": "train", "uid": "d"}
ALLOCATED = {"allocation": {"devices": {"results": [{"request": "gpu", "device": "gpu-0"}]}}}


class Past:
    """Writes a history and has it read."""

    def __init__(self) -> None:
        self.store = Store(lambda: 0.0)
        self.witness = Witness({US})
        self.world = World()
        self.world.listen(self.witness.notice)
        self.more: dict[str, Any] = {}
        """More fields of the specs of all pods."""

    def claim(self, status: dict[str, Any], by: str = "system:kube-scheduler") -> Past:
        claim = {"metadata": {"namespace": "ml", "name": "slice"}, "status": status}
        where = Address("resource.k8s.io", "resourceclaims", "ml", "slice")
        self.store.put(where, claim, Author(by, "update", "status"))
        return self

    def pod(
        self, name: str = "train-0", *, phase: str = "Running", node: str = "n1", **status: Any
    ) -> Past:
        pod = {
            "metadata": {"namespace": "ml", "name": name},
            "spec": {
                "nodeName": node,
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
                **self.more,
            },
            "status": {"phase": phase, **status},
        }
        self.store.put(Address("", "pods", "ml", name), pod, Author("kubelet", "patch", "status"))
        return self

    def gone(self, name: str = "train-0") -> Past:
        self.store.delete(Address("", "pods", "ml", name), Author("kubelet", "delete"))
        return self

    def violations(self) -> list[Violation]:
        self.world.read(self.store.history())
        return self.witness.violations


def held(*entries: dict[str, Any]) -> dict[str, Any]:
    return {**ALLOCATED, "reservedFor": list(entries)}


def rules(past: Past) -> list[str]:
    return [violation.rule for violation in past.violations()]


def reserved(
    past: Past,
    grace: int,
    name: str = "r",
    uid: str = "",
    annotations: dict[str, str] | None = None,
) -> Past:
    spec = {"resourceClaimName": "slice", "forceDeletedPodGraceSeconds": grace}
    meta: dict[str, Any] = {"namespace": "ml", "name": name, "uid": uid or name}
    meta["annotations"] = annotations or {}
    meta["finalizers"] = ["claimctl.io/release"]
    where = Address("claimctl.io", "claimreservations", "ml", name)
    past.store.put(where, {"metadata": meta, "spec": spec}, Author("somebody", "create"))
    return past


def withdrawn(past: Past, name: str = "r", by: str = US) -> Past:
    where = Address("claimctl.io", "claimreservations", "ml", name)
    past.store.delete(where, Author(by, "delete"))
    return past
