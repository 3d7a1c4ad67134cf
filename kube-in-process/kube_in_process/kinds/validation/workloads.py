"""Deployments, ReplicaSets, StatefulSets and DaemonSets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.defaults import workloads as defaults
from kube_in_process.kinds.strategy import WriteContext
from kube_in_process.kinds.validation.amounts import not_negative
from kube_in_process.kinds.validation.pod_warnings import TemplateStrategy
from kube_in_process.kinds.validation.templates import pod_template, shown_selector
from kube_in_process.kinds.validation.workload_specs import (
    daemon_set_errors,
    deployment_errors,
    replica_set_errors,
    replication_controller_errors,
    stateful_set_errors,
)
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names

_STATEFUL = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
_STATEFUL_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_GENERATION = "deprecated.daemonset.template.generation"
_PARTS = (
    "fullyLabeledReplicas",
    "updatedReplicas",
    "readyReplicas",
    "currentReplicas",
    "availableReplicas",
)
_DAEMON_STATUS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)


@dataclass(frozen=True)
class WorkloadStrategy(TemplateStrategy):
    """A kind that makes pods from a template.

    ``rules`` returns the errors of a spec. ``counters`` are the numbers of the status, in the order
    of their validation. A counter that is zero is left out, unless ``always`` names it. ``times``
    are the times of its conditions. ``annotations``: a change of annotations increases the
    generation.
    """

    revalidates = False
    status_keeps: ClassVar[tuple[str, ...]] = ()
    default_spec: Callable[[Object], None]
    rules: Callable[[Object], list[FieldError]]
    counters: tuple[str, ...] = ()
    ready_name: str = "readyReplicas"
    always: tuple[str, ...] = ()
    times: tuple[str, ...] = ("lastTransitionTime",)
    annotations: bool = False

    def default(self, obj: Object, features: Features) -> None:
        self.default_spec(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        for key in (*self.counters, "observedGeneration"):
            if status.get(key) == 0 and key not in self.always:
                del status[key]
        for key in self.always:
            status.setdefault(key, 0)
        defaults.default_conditions(status, self.times)

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        super().prepare_create(obj, context)
        obj["status"] = dict.fromkeys(self.always, 0)

    def spec_changed(self, new: Object, old: Object) -> bool:
        if super().spec_changed(new, old):
            return True
        before, after = old["metadata"], new["metadata"]
        return self.annotations and before.get("annotations") != after.get("annotations")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return self.spec_errors(obj["spec"], context.features)

    def spec_errors(self, spec: Object, features: Features) -> list[FieldError]:
        return self.rules(spec)

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            return status_errors(new["status"], self.counters, self.ready_name)
        if new["spec"] == old["spec"]:
            return []
        field_errors = self.spec_errors(new["spec"], context.features)
        return [*field_errors, *self.fixed(new["spec"], old["spec"])]

    def fixed(self, new: Object, old: Object) -> list[FieldError]:
        """The errors of changed immutable fields: the selector."""
        if new.get("selector") == old.get("selector"):
            return []
        shown = shown_selector(new.get("selector"))
        return [errors.invalid_text("spec.selector", shown, "field is immutable")]


@dataclass(frozen=True)
class DeploymentStrategy(WorkloadStrategy):
    """Annotations can be written through /status; the controller sets the revision so."""

    status_keeps = ("labels",)


@dataclass(frozen=True)
class StatefulSetStrategy(WorkloadStrategy):
    """Its name must be a DNS label, because its pods have that name.

    Recreate is a strategy only where its gate is on (KEP-3541, alpha in 1.37).
    """

    name_check = staticmethod(names.label)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """The name of its service is optional; from 1.34 on it must be a DNS label at create."""
        name, field_errors = obj["spec"].get("serviceName") or "", super().validate(obj, context)
        if name and context.features.version >= (1, 34):
            field_errors += errors.invalid_name("spec.serviceName", name, names.label)
        return field_errors

    def spec_errors(self, spec: Object, features: Features) -> list[FieldError]:
        strategy = spec.get("updateStrategy") or {}
        if not features.recreate_stateful_sets or strategy.get("type") != "Recreate":
            return self.rules(spec)
        # As for OnDelete, rollingUpdate may not be given.
        return self.rules({**spec, "updateStrategy": {**strategy, "type": "OnDelete"}})

    def fixed(self, new: Object, old: Object) -> list[FieldError]:
        """The errors of changed immutable fields: nearly all."""
        if _fixed(new) == _fixed(old):
            return []
        return [errors.forbidden_field("spec", _STATEFUL)]


@dataclass(frozen=True)
class DaemonSetStrategy(WorkloadStrategy):
    """An annotation has the generation of the template, as before there was a field for it."""

    def default(self, obj: Object, features: Features) -> None:
        super().default(obj, features)
        obj["metadata"].setdefault("annotations", {}).setdefault(_GENERATION, "1")

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        super().prepare_create(obj, context)
        obj["metadata"].setdefault("annotations", {})[_GENERATION] = "1"

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        super().prepare_update(new, old, context)
        if context.subresource == "status":
            return
        before = (old["metadata"].get("annotations") or {}).get(_GENERATION, "1")
        changed = new["spec"].get("template") != old["spec"].get("template")
        after = str(int(before) + 1) if changed else before
        new["metadata"].setdefault("annotations", {})[_GENERATION] = after


@dataclass(frozen=True)
class ReplicationStrategy(WorkloadStrategy):
    """A ReplicationController takes its selector and its labels from its template."""

    def default(self, obj: Object, features: Features) -> None:
        template = obj.setdefault("spec", {}).get("template")
        labels = ((template or {}).get("metadata") or {}).get("labels")
        if labels and not obj["spec"].get("selector"):
            obj["spec"]["selector"] = dict(labels)
        if labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)
        super().default(obj, features)

    def fixed(self, new: Object, old: Object) -> list[FieldError]:
        """Its selector may change."""
        return []

    def default_propagation(self) -> str:
        return "Orphan"


class PodTemplateStrategy(TemplateStrategy):
    """A template that nothing uses."""

    pod_spec = ("template", "spec")
    revalidates = False

    def default(self, obj: Object, features: Features) -> None:
        defaults.default_template(obj)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return pod_template(obj["template"], "template")


def _fixed(spec: Object) -> Object:
    return {key: value for key, value in spec.items() if key not in _STATEFUL_MUTABLE}


def status_errors(status: Object, counters: tuple[str, ...], ready: str) -> list[FieldError]:
    """Counters cannot be negative, and no part can be larger than the whole."""
    field_errors = not_negative(status, counters, "status")
    whole = status.get("replicas") or 0
    for key in (key for key in counters if key in _PARTS and (status.get(key) or 0) > whole):
        text = "cannot be greater than status.replicas"
        field_errors.append(errors.invalid_value(f"status.{key}", status.get(key) or 0, text))
    available = status.get("availableReplicas") or 0
    if "readyReplicas" in counters and available > (status.get("readyReplicas") or 0):
        text = f"cannot be greater than {ready}"
        field_errors.append(errors.invalid_value("status.availableReplicas", available, text))
    return field_errors


DEPLOYMENTS = DeploymentStrategy(
    defaults.default_deployment,
    deployment_errors,
    (
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "collisionCount",
    ),
    times=("lastUpdateTime", "lastTransitionTime"),
    annotations=True,
)
REPLICASETS = WorkloadStrategy(
    defaults.default_replica_set,
    replica_set_errors,
    (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
    ),
    always=("replicas",),
)
REPLICATION_CONTROLLERS = ReplicationStrategy(
    defaults.default_replication_controller,
    replication_controller_errors,
    REPLICASETS.counters,
    always=("replicas",),
)
STATEFULSETS = StatefulSetStrategy(
    defaults.default_stateful_set,
    stateful_set_errors,
    ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    "status.readyReplicas",
    always=("replicas", "availableReplicas"),
)
DAEMONSETS = DaemonSetStrategy(
    defaults.default_daemon_set, daemon_set_errors, _DAEMON_STATUS, always=_DAEMON_STATUS
)
