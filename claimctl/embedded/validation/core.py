"""Small kinds of the core group and others that differ from the ordinary in a detail."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from claimctl.embedded import errors, names
from claimctl.embedded.defaults.workloads import default_conditions
from claimctl.embedded.errors import FieldError
from claimctl.embedded.options import Features
from claimctl.embedded.store import encode
from claimctl.embedded.strategy import Context, Strategy

Object = dict[str, Any]


_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


class SegmentNameStrategy(Strategy):
    """RBAC: names are anything that fits into a path."""

    name_check = staticmethod(names.path_segment)


class ServiceStrategy(Strategy):
    """A Service gets an address that nobody answers at."""

    name_check = staticmethod(names.label_1035)

    def default(self, obj: Object, features: Features) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        for port in spec.get("ports") or []:
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))
        obj.setdefault("status", {}).setdefault("loadBalancer", {})

    def prepare_create(self, obj: Object, context: Context) -> None:
        obj["status"] = {"loadBalancer": {}}
        spec = obj["spec"]
        if not spec.get("clusterIP") and spec["type"] != "ExternalName":
            number = context.api.rng.randrange(256, 65000)
            spec["clusterIP"] = f"10.96.{number // 256}.{number % 256}"
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        if obj["spec"].get("ports") or obj["spec"].get("clusterIP") == "None":
            return []
        return [] if obj["spec"]["type"] == "ExternalName" else [errors.required("spec.ports")]


class NodeStrategy(Strategy):
    """A node's labels may be written through its status too, as kubelets do."""

    status_keeps_metadata = False

    def default(self, obj: Object, features: Features) -> None:
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])
        default_conditions(status, ("lastHeartbeatTime", "lastTransitionTime"))
        status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
        info = status.setdefault("nodeInfo", {})
        for key in _NODE_INFO:
            info.setdefault(key, "")

    def prepare_create(self, obj: Object, context: Context) -> None:
        """Unlike other kinds, nodes may be created with their status."""

    def admit(self, obj: Object, context: Context) -> None:
        """A new node is not ready until the node lifecycle controller says so."""
        taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        taints = obj["spec"].get("taints") or []
        if not context.internal and taint not in taints:
            obj["spec"]["taints"] = [*taints, taint]

    def selectable_names(self) -> tuple[str, ...]:
        return ("spec.unschedulable",)

    def selectable(self, obj: Object) -> dict[str, str]:
        return {"spec.unschedulable": str(obj["spec"].get("unschedulable", False)).lower()}


class SecretStrategy(Strategy):
    """stringData is written into data, encoded."""

    def default(self, obj: Object, features: Features) -> None:
        obj.setdefault("type", "Opaque")
        texts = obj.pop("stringData", None) or {}
        for key, text in texts.items():
            obj.setdefault("data", {})[key] = b64encode(text.encode()).decode()

    def selectable_names(self) -> tuple[str, ...]:
        return ("type",)

    def selectable(self, obj: Object) -> dict[str, str]:
        return {"type": str(obj.get("type", ""))}


class RevisionStrategy(Strategy):
    """The data of a revision never changes."""

    def validate(self, obj: Object, context: Context) -> list[FieldError]:
        found: list[FieldError] = []
        if obj.get("data") is None:
            found.append(errors.required("data", "data is mandatory"))
        if (obj.get("revision") or 0) < 0:
            text = "must be greater than or equal to 0"
            found.append(errors.invalid_value("revision", obj["revision"], text))
        return found

    def validate_update(self, new: Object, old: Object, context: Context) -> list[FieldError]:
        found = self.validate(new, context)
        if encode(new.get("data")) != encode(old.get("data")):
            found.append(errors.invalid_value("data", new.get("data"), "field is immutable"))
        return found


class PriorityClassStrategy(Strategy):
    def default(self, obj: Object, features: Features) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
        obj.setdefault("value", 0)
